// SPDX-License-Identifier: Apache-2.0
// Path MTU discovery for clients of remote servers: tells the client the longest packet that its server's tunnel carries
// (RFC 1191, 4; RFC 4443, 3.2). The message quotes the IP header, and the header of TCP without options or that of UDP.
// A packet with IPv4 options or IPv6 extension headers is dropped instead.
//
// `vip4` or `vip6`, and `vip_port`, are the packet's destination before it became the DIP.
control TooLong(inout headers_t hdr, inout metadata_t meta, in ipv4_t vip4, in ipv6_t vip6, in bit<16> vip_port) {
    action remove_outer() {
        hdr.outer_ipv4.setInvalid();
        hdr.outer_ipv6.setInvalid();
        hdr.outer_ports.setInvalid();
        hdr.outer_udp.setInvalid();
        hdr.vxlan.setInvalid();
        hdr.gre.setInvalid();
        hdr.gre_keyless.setInvalid();
        hdr.geneve.setInvalid();
        hdr.inner_ethernet.setInvalid();
    }

    action reply() {
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.port_mac;
        meta.egress_port = meta.ingress_port;
        meta.verdict = VERDICT_REPLY;
        meta.outcome = OUTCOME_TOO_LONG;
        hdr.too_long.setValid();
        hdr.ports.dst_port = vip_port;
    }

    action reply4() {
        reply();
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.too_long.icmp_type = ICMP_UNREACHABLE;
        hdr.too_long.icmp_code = ICMP_FRAGMENTATION_NEEDED;
        hdr.too_long.mtu = 16w0 ++ (meta.max_mss + 40);
        hdr.ipv4.dst = vip4;
        hdr.outer_ipv4.setValid();
        hdr.outer_ipv4.version = 4;
        hdr.outer_ipv4.ihl = 5;
        hdr.outer_ipv4.tos = 0;
        hdr.outer_ipv4.total_length = 28 + 20 + meta.excerpt_bytes;
        hdr.outer_ipv4.identification = 0;
        hdr.outer_ipv4.reserved = 0;
        hdr.outer_ipv4.dont_fragment = 1;
        hdr.outer_ipv4.more_fragments = 0;
        hdr.outer_ipv4.fragment_offset = 0;
        hdr.outer_ipv4.ttl = 64;
        hdr.outer_ipv4.protocol = PROTO_ICMP;
        hdr.outer_ipv4.src = vip4;
        hdr.outer_ipv4.dst = hdr.ipv4.src;
    }

    action reply6() {
        reply();
        hdr.ethernet.ether_type = ETHERTYPE_IPV6;
        hdr.too_long.icmp_type = ICMPV6_TOO_BIG;
        hdr.too_long.icmp_code = 0;
        hdr.too_long.mtu = 16w0 ++ (meta.max_mss + 60);
        hdr.ipv6.dst = vip6;
        hdr.outer_ipv6.setValid();
        hdr.outer_ipv6.version = 6;
        hdr.outer_ipv6.traffic_class = 0;
        hdr.outer_ipv6.flow_label = 0;
        hdr.outer_ipv6.payload_length = 8 + 40 + meta.excerpt_bytes;
        hdr.outer_ipv6.next_header = PROTO_ICMPV6;
        hdr.outer_ipv6.hop_limit = 64;
        hdr.outer_ipv6.src = vip6;
        hdr.outer_ipv6.dst = hdr.ipv6.src;
    }

    apply {
        if (meta.verdict == DROP_TUNNEL_TOO_LONG) {
            remove_outer();
            meta.excerpt_bytes = 20;
            if (hdr.udp.isValid()) {
                meta.excerpt_bytes = 8;
            }
            if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 5) {
                reply4();
            } else if (hdr.ipv6.isValid() && meta.extension_bytes == 0) {
                reply6();
            }
        }
    }
}
