// SPDX-License-Identifier: Apache-2.0
// Longest-prefix-match forwarding (RFC 1812, 5.2; RFC 8200, 3). Routes name a next hop, or a group of them (groups.p4). A
// next hop is an entry of its own.
// A packet in a tunnel is routed by its outer header.
control Forwarding(inout headers_t hdr, inout metadata_t meta) {
    OuterDestination() outer_destination;
    FlowHash() compute_flow_hash;
    NextHopGroup() next_hop_group;
    bit<1> by_ipv4;
    bit<16> next_hop_id;
    bit<16> group_id; // 0: none
    bit<32> flow_hash;
    ipv4_t destination4;
    ipv6_t destination6;

    action set_next_hop(bit<16> next_hop) {
        next_hop_id = next_hop;
    }

    action set_group(bit<16> group) {
        group_id = group;
    }

    action no_route() {
        meta.verdict = DROP_NO_ROUTE;
    }

    table ipv4_lpm {
        key = { destination4: lpm @name("dst"); }
        actions = { set_next_hop; set_group; no_route; }
        const default_action = no_route();
        size = IPV4_ROUTES;
    }

    table ipv6_lpm {
        key = { destination6: lpm @name("dst"); }
        actions = { set_next_hop; set_group; no_route; }
        const default_action = no_route();
        size = IPV6_ROUTES;
    }

    action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        meta.egress_port = port;
        hdr.ethernet.src = src_mac;
        hdr.ethernet.dst = dst_mac;
    }

    action no_next_hop() {
        meta.verdict = DROP_NO_NEXT_HOP;
    }

    table next_hop {
        key = { next_hop_id: exact @name("next_hop"); }
        actions = { forward; no_next_hop; }
        const default_action = no_next_hop();
        size = NEXT_HOPS;
    }

    apply {
        next_hop_id = 0;
        group_id = 0;
        flow_hash = 0;
        destination4 = 0;
        destination6 = 0;
        by_ipv4 = 0;
        if (hdr.ipv4.isValid()) {
            by_ipv4 = 1;
            if (hdr.ipv4.ttl <= 1) {
                meta.verdict = DROP_TTL;
            } else {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                destination4 = hdr.ipv4.dst;
            }
        } else {
            if (hdr.ipv6.hop_limit <= 1) {
                meta.verdict = DROP_TTL;
            } else {
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                destination6 = hdr.ipv6.dst;
            }
        }
        compute_flow_hash.apply(hdr, meta, flow_hash);
        outer_destination.apply(hdr, destination4, destination6, by_ipv4);

        if (meta.verdict == VERDICT_CONTINUE) {
            if (by_ipv4 == 1) {
                ipv4_lpm.apply();
            } else {
                ipv6_lpm.apply();
            }
        }
        if (meta.verdict == VERDICT_CONTINUE && group_id != 0) {
            next_hop_group.apply(meta, group_id, flow_hash, next_hop_id);
        }
        if (meta.verdict == VERDICT_CONTINUE) {
            next_hop.apply();
        }
    }
}
