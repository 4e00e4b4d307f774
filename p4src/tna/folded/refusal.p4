// SPDX-License-Identifier: Apache-2.0
// The edge: a packet that a server refused becomes the client's packet again, as in control/second_hop.p4. The hash of its
// connection is already known, because the source of a server's packet is the VIP.
#ifndef FRONTAGE_TNA_FOLDED_REFUSAL_P4
#define FRONTAGE_TNA_FOLDED_REFUSAL_P4

control Refusal(inout headers_t hdr, inout metadata_t meta) {
    action exchange_ports() {
        bit<16> vip_port = hdr.ports.src_port;
        hdr.ports.src_port = hdr.ports.dst_port;
        hdr.ports.dst_port = vip_port;
        meta.is_refused = 1;
        meta.direction = Direction.UP;
    }

    action exchange4() {
        exchange_ports();
        ipv4_t vip = hdr.ipv4.src;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = vip;
    }

    action exchange6() {
        exchange_ports();
        ipv6_t vip = hdr.ipv6.src;
        hdr.ipv6.src = hdr.ipv6.dst;
        hdr.ipv6.dst = vip;
    }

    // No switch marks a SYN.
    action refuse_syn() {
        meta.VIP_VERDICT = DROP_REFUSED_SYN;
    }

    @hidden table refusal {
        key = {
            meta.direction: ternary;
            meta.verdict: ternary;
            hdr.tcp.isValid(): ternary;
            hdr.tcp.second_hop: ternary;
            hdr.tcp.flags: ternary;
            hdr.ipv4.isValid(): ternary;
        }
        actions = { exchange4; exchange6; refuse_syn; NoAction; }
        const entries = {
            (Direction.DOWN, VERDICT_CONTINUE, true, 1, 0x02 &&& 0x02, _): refuse_syn();
            (Direction.DOWN, VERDICT_CONTINUE, true, 1, _, true): exchange4();
            (Direction.DOWN, VERDICT_CONTINUE, true, 1, _, _): exchange6();
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        refusal.apply();
    }
}

#endif
