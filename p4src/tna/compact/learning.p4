// SPDX-License-Identifier: Apache-2.0
// Learning of neighbors, as in control/learning.p4. It reads the packet after the reply, which has exchanged sender and target,
// because the stages before the reply are full.
#ifndef FRONTAGE_TNA_COMPACT_LEARNING_P4
#define FRONTAGE_TNA_COMPACT_LEARNING_P4

control Learning(in headers_t hdr, inout metadata_t meta, inout DigestType_t digest_type) {
    ipv4_t other_target; // the target of an ARP packet XOR its sender

    action compare_target() {
        other_target = hdr.arp.target ^ hdr.arp.sender;
    }

    action learn(bit<8> kind) {
        digest_type = DIGEST_NEW_NEIGHBOR;
        meta.sender.kind = kind;
    }

    action learn_arp(bit<8> kind) {
        learn(kind);
        meta.sender.address = 96w0 ++ hdr.arp.sender;
        meta.sender.mac = hdr.arp.sender_mac;
        meta.sender.source = hdr.ethernet.src;
    }

    action learn_arp_request() {
        learn(NEIGHBOR_ARP_REQUEST);
        meta.sender.address = 96w0 ++ hdr.arp.target;
        meta.sender.mac = hdr.arp.target_mac;
        meta.sender.source = hdr.ethernet.dst;
    }

    action learn_solicitation() {
        learn(NEIGHBOR_NDP_SOLICITATION);
        meta.sender.address = hdr.ipv6.dst;
        meta.sender.source = hdr.ethernet.dst;
    }

    action learn_advertisement(bit<8> kind) {
        learn(kind);
        meta.sender.address = hdr.ndp.target;
        meta.sender.source = hdr.ethernet.src;
    }

    // Without the option that has the address (RFC 4861, 4.4).
    action learn_confirmation(bit<8> kind) {
        learn_advertisement(kind);
        meta.sender.mac = 0;
    }

    @hidden table learning {
        key = {
            meta.verdict: ternary;
            meta.request: ternary;
            other_target: ternary;
            meta.has_source_option: ternary;
            meta.has_no_source: ternary;
            hdr.arp.isValid(): ternary;
            hdr.ndp.solicited: ternary;
            hdr.ndp_option.isValid(): ternary;
            hdr.ndp_option.option_type: ternary;
        }
        actions = { learn_arp; learn_arp_request; learn_solicitation; learn_advertisement; learn_confirmation; NoAction; }
        const entries = {
            (VERDICT_REPLY, REQUEST_ARP, 0, _, _, _, _, _, _): NoAction();
            (VERDICT_REPLY, REQUEST_ARP, _, _, _, _, _, _, _): learn_arp_request();
            (VERDICT_REPLY, REQUEST_NDP, _, 1, 0, _, _, _, _): learn_solicitation();
            (DROP_NEIGHBOR_NOT_LOCAL, REQUEST_ARP, 0, _, _, _, _, _, _): learn_arp(NEIGHBOR_ARP_ANNOUNCEMENT);
            (DROP_NEIGHBOR_ANSWER, _, _, _, _, true, _, _, _): learn_arp(NEIGHBOR_ARP_REPLY);
            (DROP_NEIGHBOR_ANSWER, _, _, _, _, _, 1, true, 2): learn_advertisement(NEIGHBOR_NDP_ADVERTISEMENT);
            (DROP_NEIGHBOR_ANSWER, _, _, _, _, _, 1, _, _): learn_confirmation(NEIGHBOR_NDP_ADVERTISEMENT);
            (DROP_NEIGHBOR_ANSWER, _, _, _, _, _, _, true, 2): learn_advertisement(NEIGHBOR_NDP_UNSOLICITED);
            (DROP_NEIGHBOR_ANSWER, _, _, _, _, _, _, _, _): learn_confirmation(NEIGHBOR_NDP_UNSOLICITED);
        }
        const default_action = NoAction();
        size = 16;
    }

    apply {
        compare_target();
        learning.apply();
    }
}

#endif
