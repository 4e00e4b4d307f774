// SPDX-License-Identifier: Apache-2.0
// Replies to ARP, neighbor solicitations and pings, as in control/neighbor.p4.
#ifndef FRONTAGE_TNA_COMPACT_NEIGHBOR_P4
#define FRONTAGE_TNA_COMPACT_NEIGHBOR_P4

control Neighbor(inout headers_t hdr, inout metadata_t meta, in port_t ingress_port, inout port_t egress_port) {
    action set_request(bit<8> request) {
        meta.request = request;
    }

    action drop(bit<8> reason) {
        meta.NEIGHBOR_VERDICT = reason;
    }

#ifndef WITHOUT_LEARNING
    // The reply overwrites the option.
    action solicitation_with_source() {
        meta.request = REQUEST_NDP;
        meta.has_source_option = 1;
    }

    action read_option() {
        meta.sender.mac = hdr.ndp_option.mac;
    }
#endif

    @hidden table kind {
        key = {
            hdr.arp.isValid(): ternary;
            hdr.arp.operation: ternary;
            hdr.arp.hardware_type: ternary;
            hdr.arp.protocol_type: ternary;
            hdr.ethernet.dst[40:40]: ternary;
            hdr.ipv4.isValid(): ternary;
            hdr.ipv6.isValid(): ternary;
            hdr.ipv6.next_header: ternary;
            hdr.ipv6.hop_limit: ternary;
            hdr.icmp.isValid(): ternary;
            hdr.icmp.icmp_type: ternary;
            hdr.icmp.icmp_code: ternary;
            hdr.ndp.isValid(): ternary;
            meta.parse_failure: ternary;
#ifndef WITHOUT_LEARNING
            hdr.ndp_option.isValid(): ternary;
            hdr.ndp_option.option_type: ternary;
#endif
        }
#ifdef WITHOUT_LEARNING
#define KINDS 9
        actions = { set_request; drop; NoAction; }
        const entries = {
            (true, 1, 1, ETHERTYPE_IPV4, _, _, _, _, _, _, _, _, _, _): set_request(REQUEST_ARP);
            (true, 2, 1, ETHERTYPE_IPV4, _, _, _, _, _, _, _, _, _, _): drop(DROP_NEIGHBOR_ANSWER);
            (true, _, _, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_NEIGHBOR_NOT_LOCAL);
            // Hop limit 255 proves that the packet comes from this link (RFC 4861, 7.1.1).
            (_, _, _, _, _, _, _, PROTO_ICMPV6, 255, _, _, 0, true, DROP_NONE): set_request(REQUEST_NDP);
            (_, _, _, _, _, _, _, _, _, _, _, _, true, _): drop(DROP_NEIGHBOR_NOT_LOCAL);
            (_, _, _, _, 1, _, _, _, _, _, _, _, _, _): drop(DROP_MULTICAST);
            (_, _, _, _, _, true, _, _, _, true, ICMP_ECHO_REQUEST, 0, _, _): set_request(REQUEST_ECHO4);
            (_, _, _, _, _, _, true, PROTO_ICMPV6, _, true, ICMPV6_ECHO_REQUEST, 0, _, _): set_request(REQUEST_ECHO6);
        }
#else
#define KINDS 12
        actions = { set_request; solicitation_with_source; drop; NoAction; }
        const entries = {
            (true, 1, 1, ETHERTYPE_IPV4, _, _, _, _, _, _, _, _, _, _, _, _): set_request(REQUEST_ARP);
            (true, 2, 1, ETHERTYPE_IPV4, _, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_NEIGHBOR_ANSWER);
            (true, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_NEIGHBOR_NOT_LOCAL);
            // Hop limit 255 proves that the packet comes from this link (RFC 4861, 7.1.1).
            (_, _, _, _, _, _, _, PROTO_ICMPV6, 255, _, NDP_ADVERTISEMENT, 0, true, DROP_NONE, _, _): drop(DROP_NEIGHBOR_ANSWER);
            (_, _, _, _, _, _, _, PROTO_ICMPV6, 255, _, _, 0, true, DROP_NONE, true, 1): solicitation_with_source();
            (_, _, _, _, _, _, _, PROTO_ICMPV6, 255, _, _, 0, true, DROP_NONE, _, _): set_request(REQUEST_NDP);
            (_, _, _, _, _, _, _, _, _, _, _, _, true, _, _, _): drop(DROP_NEIGHBOR_NOT_LOCAL);
            (_, _, _, _, 1, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_MULTICAST);
            (_, _, _, _, _, true, _, _, _, true, ICMP_ECHO_REQUEST, 0, _, _, _, _): set_request(REQUEST_ECHO4);
            (_, _, _, _, _, _, true, PROTO_ICMPV6, _, true, ICMPV6_ECHO_REQUEST, 0, _, _, _, _): set_request(REQUEST_ECHO6);
        }
#endif
        const default_action = NoAction();
        size = KINDS;
    }

    action reply() {
        hdr.ethernet.dst = hdr.ethernet.src;
        egress_port = ingress_port;
        meta.NEIGHBOR_VERDICT = VERDICT_REPLY;
    }

    action not_local() {
        meta.NEIGHBOR_VERDICT = DROP_NEIGHBOR_NOT_LOCAL;
    }

    action arp_reply(mac_t mac) {
        reply();
        hdr.ethernet.src = mac;
        hdr.arp.operation = 2;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.sender_mac = mac;
        ipv4_t requester = hdr.arp.sender;
        hdr.arp.sender = hdr.arp.target;
        hdr.arp.target = requester;
    }

    @stage(2) table arp {
        key = { hdr.arp.target: exact @name("target"); }
        actions = { arp_reply; not_local; }
        const default_action = not_local();
        size = NEIGHBORS;
    }

    action ndp_reply(mac_t mac) {
        reply();
        hdr.ethernet.src = mac;
        hdr.ipv6.dst = hdr.ipv6.src;
        hdr.ipv6.src = hdr.ndp.target;
        hdr.ipv6.hop_limit = 255;
        hdr.ipv6.payload_length = 32;
        hdr.icmp.icmp_type = NDP_ADVERTISEMENT;
        hdr.ndp.router = 1;
        hdr.ndp.solicited = 1;
        hdr.ndp.override = 1;
        hdr.ndp.reserved = 0;
        hdr.ndp_option.setValid();
        hdr.ndp_option.option_type = 2; // target link-layer address
        hdr.ndp_option.length = 1;
        hdr.ndp_option.mac = mac;
        meta.is_advertisement = 1;
    }

    STAGE_OF_TOFINO1(2) table ndp {
        key = { hdr.ndp.target: exact @name("target"); }
        actions = { ndp_reply; not_local; }
        const default_action = not_local();
        size = NEIGHBORS;
    }

    action echo_reply() {
        reply();
        hdr.ethernet.src = meta.port_mac;
    }

    STAGE_OF_TOFINO1(2) table echo4 {
        key = { hdr.ipv4.dst: exact @name("dst"); }
        actions = { echo_reply; NoAction; }
        const default_action = NoAction();
        size = NEIGHBORS;
    }

    STAGE_OF_TOFINO1(2) table echo6 {
        key = { hdr.ipv6.dst: exact @name("dst"); }
        actions = { echo_reply; NoAction; }
        const default_action = NoAction();
        size = NEIGHBORS;
    }

    apply {
#ifndef WITHOUT_LEARNING
        read_option();
#endif
        kind.apply();
        if (meta.request == REQUEST_ARP) {
            arp.apply();
        } else if (meta.request == REQUEST_NDP) {
            ndp.apply();
        } else if (meta.request == REQUEST_ECHO4) {
            echo4.apply();
        } else if (meta.request == REQUEST_ECHO6) {
            echo6.apply();
        }
    }
}

// The rest of some replies, once the hashes of other packets have read the addresses.
control NeighborRest(inout headers_t hdr, in metadata_t meta) {
    // The requester has no address yet: reply to all nodes (RFC 4861, 7.2.4).
    action reply_to_all() {
        hdr.ipv6.dst = 0xff020000000000000000000000000001;
        hdr.ethernet.dst = 0x333300000001;
        hdr.ndp.solicited = 0;
    }

    // The checksum changes by one word (RFC 1624).
    action reply4(bit<16> difference) {
        ipv4_t requester = hdr.ipv4.src;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = requester;
        hdr.ipv4.ttl = 64;
        hdr.icmp.icmp_type = ICMP_ECHO_REPLY;
        hdr.icmp.checksum = hdr.icmp.checksum + difference;
    }

    action reply6(bit<16> difference) {
        ipv6_t requester = hdr.ipv6.src;
        hdr.ipv6.src = hdr.ipv6.dst;
        hdr.ipv6.dst = requester;
        hdr.ipv6.hop_limit = 64;
        hdr.icmp.icmp_type = ICMPV6_ECHO_REPLY;
        hdr.icmp.checksum = hdr.icmp.checksum + difference;
    }

    @hidden table rest {
        key = {
            meta.NEIGHBOR_VERDICT: ternary;
            meta.request: ternary;
            meta.has_no_source: ternary;
            hdr.icmp.checksum: ternary;
        }
        actions = { reply_to_all; reply4; reply6; NoAction; }
        const entries = {
            (VERDICT_REPLY, REQUEST_NDP, 1, _): reply_to_all();
            (VERDICT_REPLY, REQUEST_ECHO4, _, 0xf800 &&& 0xf800): reply4(0x0801); // with the carry
            (VERDICT_REPLY, REQUEST_ECHO4, _, _): reply4(0x0800);
            (VERDICT_REPLY, REQUEST_ECHO6, _, 0x0000 &&& 0xff00): reply6(0xfeff); // -0x0100
            (VERDICT_REPLY, REQUEST_ECHO6, _, 0x0100): reply6(0xfeff);
            (VERDICT_REPLY, REQUEST_ECHO6, _, _): reply6(0xff00);
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        rest.apply();
    }
}

#endif
