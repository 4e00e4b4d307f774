// SPDX-License-Identifier: Apache-2.0
// Encapsulates a packet in a tunnel to a site, a dispatcher or a replica; only its hop limit has changed. The outer
// packet is not ECN-capable (RFC 6040, 4.3: compatibility mode) and must not be fragmented (RFC 7348, 4.3). VXLAN
// adds 50 bytes over IPv4 and 70 over IPv6, GRE 28 and 48: the network on the way drops packets that become too long.
control Encapsulation(inout headers_t hdr, inout metadata_t meta, in Remote kind, in bit<16> number) {
    bit<8> encapsulated;
    bit<16> length; // after the outer IP header

    DIRECT_COUNTER(sent)

    action set_tunnel4(bit<8> encapsulation, ipv4_t src, ipv4_t dst) {
        COUNT(sent)
        encapsulated = encapsulation;
        hdr.outer_ipv4.setValid();
        hdr.outer_ipv4.version = 4;
        hdr.outer_ipv4.ihl = 5;
        hdr.outer_ipv4.tos = 0;
        hdr.outer_ipv4.identification = 0;
        hdr.outer_ipv4.reserved = 0;
        hdr.outer_ipv4.dont_fragment = 1;
        hdr.outer_ipv4.more_fragments = 0;
        hdr.outer_ipv4.fragment_offset = 0;
        hdr.outer_ipv4.ttl = 64;
        hdr.outer_ipv4.src = src;
        hdr.outer_ipv4.dst = dst;
    }

    action set_tunnel6(bit<8> encapsulation, ipv6_t src, ipv6_t dst) {
        COUNT(sent)
        encapsulated = encapsulation;
        hdr.outer_ipv6.setValid();
        hdr.outer_ipv6.version = 6;
        hdr.outer_ipv6.traffic_class = 0;
        hdr.outer_ipv6.flow_label = 0;
        hdr.outer_ipv6.hop_limit = 64;
        hdr.outer_ipv6.src = src;
        hdr.outer_ipv6.dst = dst;
    }

    action no_tunnel() {
        meta.verdict = DROP_NO_TUNNEL;
    }

    table remote {
        key = {
            kind: exact @name("kind");
            number: exact @name("id");
        }
        actions = { set_tunnel4; set_tunnel6; @defaultonly no_tunnel; }
        const default_action = no_tunnel();
        counters = sent;
        size = TUNNEL_ENDPOINTS;
    }

    // The source port spreads connections over paths (RFC 7348, 5). The UDP checksum is zero, over IPv6 too: the
    // inner packet has its own (RFC 6935).
    action add_vxlan() {
        length = length + 30;
        hdr.outer_ports.setValid();
        hdr.outer_ports.src_port = 2w3 ++ meta.connection_hash[13:0];
        hdr.outer_ports.dst_port = VXLAN_PORT;
        hdr.outer_udp.setValid();
        hdr.outer_udp.length = length;
        hdr.outer_udp.checksum = 0;
        hdr.vxlan.setValid();
        hdr.vxlan.flags = VXLAN_HAS_VNI;
        hdr.vxlan.reserved = 0;
        hdr.vxlan.vni = 16w0 ++ meta.origin_site;
        hdr.vxlan.reserved2 = 0;
        hdr.inner_ethernet.setValid();
        hdr.inner_ethernet.dst = 0x020000000000;
        hdr.inner_ethernet.src = 0x020000000000;
        hdr.inner_ethernet.ether_type = hdr.ethernet.ether_type;
    }

    action add_gre() {
        length = length + 8;
        hdr.gre.setValid();
        hdr.gre.flags = GRE_HAS_KEY;
        hdr.gre.protocol = hdr.ethernet.ether_type;
        hdr.gre.key = 24w0 ++ meta.origin_site;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            length = hdr.ipv4.total_length;
        } else {
            length = hdr.ipv6.payload_length + 40;
        }
        encapsulated = 0;
        if (remote.apply().hit) {
            bit<8> protocol = PROTO_UDP;
            if (encapsulated == (bit<8>)Encapsulated.VXLAN) {
                add_vxlan();
            } else {
                protocol = PROTO_GRE;
                add_gre();
            }
            if (hdr.outer_ipv4.isValid()) {
                hdr.ethernet.ether_type = ETHERTYPE_IPV4;
                hdr.outer_ipv4.total_length = length + 20;
                hdr.outer_ipv4.protocol = protocol;
            } else {
                hdr.ethernet.ether_type = ETHERTYPE_IPV6;
                hdr.outer_ipv6.payload_length = length;
                hdr.outer_ipv6.next_header = protocol;
            }
        }
    }
}

// Routes a packet that leaves by a tunnel by its outer header.
control OuterDestination(in headers_t hdr, inout ipv4_t destination4, inout ipv6_t destination6, inout bit<1> by_ipv4) {
    apply {
        if (hdr.outer_ipv4.isValid()) {
            by_ipv4 = 1;
            destination4 = hdr.outer_ipv4.dst;
        } else if (hdr.outer_ipv6.isValid()) {
            by_ipv4 = 0;
            destination6 = hdr.outer_ipv6.dst;
        }
    }
}
