// Longest-prefix-match forwarding (RFC 1812, 5.2; RFC 8200, 3), with next hops apart from routes.
control Forwarding(inout headers_t hdr, inout metadata_t meta) {
    bit<16> next_hop_id;

    action set_next_hop(bit<16> next_hop) {
        next_hop_id = next_hop;
    }

    action no_route() {
        meta.drop = DROP_NO_ROUTE;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { set_next_hop; no_route; }
        const default_action = no_route();
        size = IPV4_ROUTES;
    }

    table ipv6_lpm {
        key = { hdr.ipv6.dst: lpm @name("dst"); }
        actions = { set_next_hop; no_route; }
        const default_action = no_route();
        size = IPV6_ROUTES;
    }

    action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        meta.egress_port = port;
        hdr.ethernet.src = src_mac;
        hdr.ethernet.dst = dst_mac;
    }

    action no_next_hop() {
        meta.drop = DROP_NO_NEXT_HOP;
    }

    table next_hop {
        key = { next_hop_id: exact @name("next_hop"); }
        actions = { forward; no_next_hop; }
        const default_action = no_next_hop();
        size = NEXT_HOPS;
    }

    apply {
        next_hop_id = 0;
        if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.ttl <= 1) {
                meta.drop = DROP_TTL;
            } else {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                ipv4_lpm.apply();
            }
        } else {
            if (hdr.ipv6.hop_limit <= 1) {
                meta.drop = DROP_TTL;
            } else {
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                ipv6_lpm.apply();
            }
        }
        if (meta.drop == DROP_NONE) {
            next_hop.apply();
        }
    }
}
