// SPDX-License-Identifier: Apache-2.0
// Encapsulates a packet in a tunnel to a site, a dispatcher, a replica or a remote server. The outer packet is not
// ECN-capable (RFC 6040, 4.3: compatibility mode) and must not be fragmented (RFC 7348, 4.3). VXLAN and Geneve add 50
// bytes over IPv4 and 70 over IPv6, GRE 28 and 48, or 24 and 44 without a key, and IP in IP 20 and 40. Packets to remote
// servers that become too long are dropped here, other ones by the network on the way.
control Encapsulation(inout headers_t hdr, inout metadata_t meta, in Remote kind, in bit<16> number) {
    bit<8> encapsulated;
    bit<16> length; // after the outer IP header

    DIRECT_COUNTER(sent)

    action add_outer4(ipv4_t src, ipv4_t dst) {
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

    action add_outer6(ipv6_t src, ipv6_t dst) {
        hdr.outer_ipv6.setValid();
        hdr.outer_ipv6.version = 6;
        hdr.outer_ipv6.traffic_class = 0;
        hdr.outer_ipv6.flow_label = 0;
        hdr.outer_ipv6.hop_limit = 64;
        hdr.outer_ipv6.src = src;
        hdr.outer_ipv6.dst = dst;
    }

    action set_tunnel4(bit<8> encapsulation, ipv4_t src, ipv4_t dst) {
        COUNT(sent)
        encapsulated = encapsulation;
        add_outer4(src, dst);
    }

    action set_tunnel6(bit<8> encapsulation, ipv6_t src, ipv6_t dst) {
        COUNT(sent)
        encapsulated = encapsulation;
        add_outer6(src, dst);
    }

#ifndef WITHOUT_REMOTE_SERVERS
    bit<32> tunnel_id;  // of a remote server's tunnel
    bit<16> max_length; // of the packet; 0: no limit

    action set_server_tunnel4(bit<8> encapsulation, bit<32> id, bit<16> length_limit, ipv4_t src, ipv4_t dst) {
        set_tunnel4(encapsulation, src, dst);
        tunnel_id = id;
        max_length = length_limit;
    }

    // The flow label spreads connections over paths (RFC 6438).
    action set_server_tunnel6(bit<8> encapsulation, bit<32> id, bit<16> length_limit, ipv6_t src, ipv6_t dst) {
        set_tunnel6(encapsulation, src, dst);
        hdr.outer_ipv6.flow_label = meta.connection_hash[19:0];
        tunnel_id = id;
        max_length = length_limit;
    }
#define REMOTE_ACTIONS set_tunnel4; set_tunnel6; set_server_tunnel4; set_server_tunnel6;
#else
#define REMOTE_ACTIONS set_tunnel4; set_tunnel6;
#endif

    action no_tunnel() {
        meta.verdict = DROP_NO_TUNNEL;
    }

    table remote {
        key = {
            kind: exact @name("kind");
            number: exact @name("id");
        }
        actions = { REMOTE_ACTIONS @defaultonly no_tunnel; }
        const default_action = no_tunnel();
        counters = sent;
        size = TUNNEL_ENDPOINTS;
    }

    // The source port spreads connections over paths (RFC 7348, 5). The UDP checksum is zero, over IPv6 too: the
    // inner packet has its own (RFC 6935).
    action add_udp(bit<16> port) {
        hdr.outer_ports.setValid();
        hdr.outer_ports.src_port = 2w3 ++ meta.connection_hash[13:0];
        hdr.outer_ports.dst_port = port;
        hdr.outer_udp.setValid();
        hdr.outer_udp.length = length;
        hdr.outer_udp.checksum = 0;
    }

    action add_inner_ethernet() {
        hdr.inner_ethernet.setValid();
        hdr.inner_ethernet.dst = 0x020000000000;
        hdr.inner_ethernet.src = 0x020000000000;
        hdr.inner_ethernet.ether_type = hdr.ethernet.ether_type;
    }

    action add_vxlan() {
        length = length + 30;
        add_udp(VXLAN_PORT);
        hdr.vxlan.setValid();
        hdr.vxlan.flags = VXLAN_HAS_VNI;
        hdr.vxlan.reserved = 0;
        hdr.vxlan.vni = 16w0 ++ meta.origin_site;
        hdr.vxlan.reserved2 = 0;
        add_inner_ethernet();
    }

    action add_gre() {
        length = length + 8;
        hdr.gre.setValid();
        hdr.gre.flags = GRE_HAS_KEY;
        hdr.gre.protocol = hdr.ethernet.ether_type;
        hdr.gre.key = 24w0 ++ meta.origin_site;
    }

#ifndef WITHOUT_REMOTE_SERVERS
    action add_geneve() {
        length = length + 30;
        add_udp(GENEVE_PORT);
        hdr.geneve.setValid();
        hdr.geneve.version = 0;
        hdr.geneve.options_length = 0;
        hdr.geneve.is_control = 0;
        hdr.geneve.has_critical_options = 0;
        hdr.geneve.reserved = 0;
        hdr.geneve.protocol = ETHERTYPE_ETHERNET;
        hdr.geneve.vni = tunnel_id[23:0];
        hdr.geneve.reserved2 = 0;
        add_inner_ethernet();
    }

    // Linux ignores inner frames whose source is the receiving interface's own address, which is their destination.
    action set_tunnel_id() {
        hdr.vxlan.vni = tunnel_id[23:0];
        hdr.gre.key = tunnel_id;
        hdr.inner_ethernet.src = 0x020000000001;
    }

    action add_keyless_gre() {
        length = length + 4;
        hdr.gre_keyless.setValid();
        hdr.gre_keyless.flags = GRE_PLAIN;
        hdr.gre_keyless.protocol = hdr.ethernet.ether_type;
    }
#endif

    apply {
        if (hdr.ipv4.isValid()) {
            length = hdr.ipv4.total_length;
        } else {
            length = hdr.ipv6.payload_length + 40;
        }
        encapsulated = 0;
#ifndef WITHOUT_REMOTE_SERVERS
        tunnel_id = 0;
        max_length = 0;
#endif
        if (remote.apply().hit) {
            bit<8> protocol = PROTO_UDP;
#ifndef WITHOUT_REMOTE_SERVERS
            if (max_length != 0 && length > max_length) {
                meta.verdict = DROP_TUNNEL_TOO_LONG;
            }
            if (encapsulated == (bit<8>)Encapsulated.GENEVE) {
                add_geneve();
            } else if (encapsulated == (bit<8>)Encapsulated.GRE_KEYLESS) {
                protocol = PROTO_GRE;
                add_keyless_gre();
            } else if (encapsulated == (bit<8>)Encapsulated.IP) {
                protocol = PROTO_IPV6;
                if (hdr.ipv4.isValid()) {
                    protocol = PROTO_IPV4;
                }
            } else
#endif
            if (encapsulated == (bit<8>)Encapsulated.VXLAN) {
                add_vxlan();
            } else {
                protocol = PROTO_GRE;
                add_gre();
            }
#ifndef WITHOUT_REMOTE_SERVERS
            if (kind == Remote.SERVER) {
                set_tunnel_id();
            }
#endif
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
