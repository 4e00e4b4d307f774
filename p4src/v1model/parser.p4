// SPDX-License-Identifier: Apache-2.0
// The parser: from Ethernet to the TCP timestamp option or QUIC's connection id, in a second pass after the outer
// headers of a tunnel.
//
// Options and extension headers before those are kept word by word; everything after them stays payload. A truncated
// packet, or one with more options than fit, stops the parser with an error. The switch still forwards such a packet
// if its IP header is enough for that, and drops it for a named reason if a stage needs more (meta.parse_failure).
#ifndef FRONTAGE_V1MODEL_PARSER_P4
#define FRONTAGE_V1MODEL_PARSER_P4

error {
    Ipv4HeaderLength,
    TcpDataOffset,
    TunnelHeader
}

parser PacketParser(packet_in packet, out headers_t hdr, inout metadata_t meta) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(meta.from_tunnel) {
            1: outer;
            default: layer3;
        }
    }

    state layer3 {
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            ETHERTYPE_ARP: arp;
            default: accept;
        }
    }

    // The outer headers of a tunnel that control/tunnel.p4 accepted. The inner packet is then parsed like any other.
    state outer {
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: outer_ipv4;
            default: outer_ipv6;
        }
    }

    state outer_ipv4 {
        packet.extract(hdr.outer_ipv4);
        transition select(hdr.outer_ipv4.protocol) {
            PROTO_UDP: outer_udp;
            PROTO_IPV4: inner_ipv4;
            PROTO_IPV6: inner_ipv6;
            default: gre;
        }
    }

    state outer_ipv6 {
        packet.extract(hdr.outer_ipv6);
        transition select(hdr.outer_ipv6.next_header) {
            PROTO_UDP: outer_udp;
            PROTO_IPV4: inner_ipv4;
            PROTO_IPV6: inner_ipv6;
            default: gre;
        }
    }

    state outer_udp {
        packet.extract(hdr.outer_ports);
        packet.extract(hdr.outer_udp);
        transition select(hdr.outer_ports.dst_port) {
            GENEVE_PORT: geneve;
            default: vxlan;
        }
    }

    state inner_ipv4 {
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        transition ipv4;
    }

    state inner_ipv6 {
        hdr.ethernet.ether_type = ETHERTYPE_IPV6;
        transition ipv6;
    }

    state vxlan {
        packet.extract(hdr.vxlan);
        packet.extract(hdr.inner_ethernet);
        verify((hdr.vxlan.flags & VXLAN_HAS_VNI) != 0, error.TunnelHeader);
        hdr.ethernet.ether_type = hdr.inner_ethernet.ether_type;
        transition layer3;
    }

    // A Geneve header without options, around an Ethernet frame of data.
    state geneve {
        packet.extract(hdr.geneve);
        packet.extract(hdr.inner_ethernet);
        verify(hdr.geneve.version == 0 && hdr.geneve.options_length == 0 && hdr.geneve.is_control == 0
            && hdr.geneve.has_critical_options == 0 && hdr.geneve.protocol == ETHERTYPE_ETHERNET, error.TunnelHeader);
        hdr.ethernet.ether_type = hdr.inner_ethernet.ether_type;
        transition layer3;
    }

    // Only a remote server may leave out the key.
    state gre {
        bit<16> flags = packet.lookahead<bit<16>>();
        transition select(meta.peer_is_server, flags) {
            (1, GRE_PLAIN): gre_keyless;
            default: gre_key;
        }
    }

    state gre_keyless {
        packet.extract(hdr.gre_keyless);
        hdr.ethernet.ether_type = hdr.gre_keyless.protocol;
        transition layer3;
    }

    state gre_key {
        packet.extract(hdr.gre);
        verify(hdr.gre.flags == GRE_HAS_KEY, error.TunnelHeader);
        hdr.ethernet.ether_type = hdr.gre.protocol;
        transition layer3;
    }

    state arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.ihl >= 5, error.Ipv4HeaderLength);
        meta.protocol = hdr.ipv4.protocol;
        meta.remaining = (bit<8>)hdr.ipv4.ihl - 5;
        transition ipv4_option;
    }

    state ipv4_option {
        transition select(meta.remaining) {
            0: ipv4_end;
            default: ipv4_option_word;
        }
    }

    state ipv4_option_word {
        packet.extract(hdr.ipv4_options.next);
        meta.remaining = meta.remaining - 1;
        transition ipv4_option;
    }

    state ipv4_end {
        transition select(hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset) {
            (0, 0): ipv4_transport;
            default: fragment;
        }
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        meta.protocol = hdr.ipv6.next_header;
        transition ipv6_next;
    }

    state ipv6_next {
        transition select(meta.protocol) {
            PROTO_HOPOPT: ipv6_extension;
            PROTO_ROUTING: ipv6_extension;
            PROTO_DSTOPT: ipv6_extension;
            PROTO_FRAGMENT: fragment;
            PROTO_TCP: tcp;
            PROTO_UDP: udp;
            PROTO_ICMPV6: icmpv6;
            default: accept;
        }
    }

    state ipv6_extension {
        packet.extract(hdr.ipv6_extensions.next);
        meta.extension_bytes = meta.extension_bytes + 8;
        meta.protocol = hdr.ipv6_extensions.last.next_header;
        meta.remaining = hdr.ipv6_extensions.last.length;
        transition ipv6_extension_rest;
    }

    state ipv6_extension_rest {
        transition select(meta.remaining) {
            0: ipv6_next;
            default: ipv6_extension_unit;
        }
    }

    state ipv6_extension_unit {
        packet.extract(hdr.ipv6_extensions.next);
        meta.extension_bytes = meta.extension_bytes + 8;
        meta.remaining = meta.remaining - 1;
        transition ipv6_extension_rest;
    }

    state fragment {
        meta.is_fragment = 1;
        transition accept;
    }

    state ipv4_transport {
        transition select(meta.protocol) {
            PROTO_TCP: tcp;
            PROTO_UDP: udp;
            PROTO_ICMP: icmp;
            default: accept;
        }
    }

    state icmp {
        packet.extract(hdr.icmp);
        transition select(hdr.icmp.icmp_type) {
            ICMP_UNREACHABLE: quoted_ipv4;
            ICMP_TIME_EXCEEDED: quoted_ipv4;
            ICMP_PARAMETER_PROBLEM: quoted_ipv4;
            default: accept;
        }
    }

    state icmpv6 {
        packet.extract(hdr.icmp);
        transition select(hdr.icmp.icmp_type) {
            ICMPV6_UNREACHABLE: quoted_ipv6;
            ICMPV6_TOO_BIG: quoted_ipv6;
            ICMPV6_TIME_EXCEEDED: quoted_ipv6;
            ICMPV6_PARAMETER_PROBLEM: quoted_ipv6;
            NDP_SOLICITATION: ndp;
            NDP_ADVERTISEMENT: ndp;
            default: accept;
        }
    }

    // The quote of an ICMP error. No server sends IPv4 options or IPv6 extension headers.
    state quoted_ipv4 {
        packet.extract(hdr.icmp_error);
        packet.extract(hdr.quoted_ipv4);
        meta.quoted_bytes = hdr.ipv4.total_length - 28 - ((bit<16>)hdr.ipv4.ihl << 2);
        transition select(hdr.quoted_ipv4.version, hdr.quoted_ipv4.ihl, hdr.quoted_ipv4.fragment_offset, hdr.quoted_ipv4.protocol) {
            (4, 5, 0, PROTO_TCP): quoted_segment;
            (4, 5, 0, PROTO_UDP): quoted_datagram;
            default: accept;
        }
    }

    state quoted_ipv6 {
        packet.extract(hdr.icmp_error);
        packet.extract(hdr.quoted_ipv6);
        meta.quoted_bytes = hdr.ipv6.payload_length - 48 - meta.extension_bytes;
        transition select(hdr.quoted_ipv6.version, hdr.quoted_ipv6.next_header) {
            (6, PROTO_TCP): quoted_segment;
            (6, PROTO_UDP): quoted_datagram;
            default: accept;
        }
    }

    // A router may quote only 8 bytes of a segment (RFC 792). A header has 20 bytes, and 32 with timestamps.
    state quoted_segment {
        packet.extract(hdr.quoted_ports);
        transition select(meta.quoted_bytes) {
            0 &&& 0xfff0: accept;
            16 &&& 0xfffc: accept;
            0 &&& 0xffe0: quoted_tcp_alone;
            default: quoted_tcp;
        }
    }

    state quoted_tcp_alone {
        packet.extract(hdr.quoted_tcp);
        transition accept;
    }

    // The layouts of Linux, whose agent writes the cookie (host-agents/cclb7).
    state quoted_tcp {
        packet.extract(hdr.quoted_tcp);
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(hdr.quoted_tcp.data_offset, word) {
            (8 &&& 8, 0x0101080a): quoted_timestamp;              // NOP NOP TS
            (8 &&& 8, 0x02040000 &&& 0xffff0000): quoted_syn_ack; // MSS
            default: accept;
        }
    }

    state quoted_syn_ack {
        packet.extract(hdr.quoted_mss);
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(hdr.quoted_tcp.data_offset, word) {
            (8, _): accept; // no room for timestamps
            (_, 0x0402080a): quoted_timestamp; // SACK-permitted TS
            (_, 0x0101080a): quoted_timestamp;
            default: accept;
        }
    }

    state quoted_timestamp {
        packet.extract(hdr.quoted_timestamp);
        transition accept;
    }

    state quoted_datagram {
        packet.extract(hdr.quoted_ports);
        packet.extract(hdr.quoted_udp);
        transition accept;
    }

    state ndp {
        packet.extract(hdr.ndp);
        transition select(hdr.ipv6.payload_length) {
            24: accept; // no option: duplicate address detection
            default: ndp_option;
        }
    }

    state ndp_option {
        packet.extract(hdr.ndp_option);
        transition accept;
    }

    // Only the version-independent part of QUIC is parsed (RFC 8999). Any datagram can be read as that.
    state udp {
        packet.extract(hdr.ports);
        packet.extract(hdr.udp);
        bit<8> first = packet.lookahead<bit<8>>();
        transition select(first) {
            0x80 &&& 0x80: quic_long;
            default: quic_short;
        }
    }

    state quic_long {
        packet.extract(hdr.quic_long);
        transition select(hdr.quic_long.dcid_length) {
            CID_LENGTH: connection_id;
            default: accept;
        }
    }

    state quic_short {
        packet.extract(hdr.quic_short);
        transition connection_id;
    }

    state connection_id {
        packet.extract(hdr.connection_id);
        meta.cookie_word = hdr.connection_id.word;
        transition accept;
    }

    state tcp {
        packet.extract(hdr.ports);
        packet.extract(hdr.tcp);
        verify(hdr.tcp.data_offset >= 5, error.TcpDataOffset);
        meta.remaining = (bit<8>)hdr.tcp.data_offset - 5;
        meta.syn.window_scale = SYN_NO_WINDOW_SCALE;
        transition tcp_option;
    }

    // The parser walks options one 32-bit word at a time, because every TCP in use aligns them: it recognises an
    // option at the start of a word or after two NOPs. Any other layout ends the walk, and the connection is served
    // without a cookie (control/fallback.p4).
    state tcp_option {
        transition select(meta.remaining) {
            0: accept;
            default: tcp_option_kind;
        }
    }

    state tcp_option_kind {
        bit<32> word = packet.lookahead<bit<32>>();
        meta.option_words = 1;
        transition select(word) {
            0x0101080a: tcp_timestamp;                          // NOP NOP TS
            0x0402080a: tcp_sack_timestamp;                     // SACK-permitted TS
            0x01010101: tcp_option_skip;
            0x01010402: tcp_option_sack;                        // NOP NOP SACK-permitted
            0x04020101: tcp_option_sack;
            0x01030300 &&& 0xffffff00: tcp_option_scale_behind; // NOP window scale
            0x03030001 &&& 0xffff00ff: tcp_option_scale_first;
            0x02040000 &&& 0xffff0000: tcp_option_mss;
            0x01010100 &&& 0xffffff00: accept;                  // three NOPs and one byte of the next option
            0x01010000 &&& 0xffffff00: accept;                  // end of options
            0x01010800 &&& 0xffffff00: accept;                  // timestamps with a wrong length
            0x01010002 &&& 0xffff0003: tcp_option_behind_nops;  // NOP NOP and an option of 4n + 2 bytes (SACK, MD5)
            0x01000000 &&& 0xff000000: accept;
            0x00000000 &&& 0xff000000: accept;                  // end of options
            0x00000000 &&& 0x00ff0000: accept;                  // length zero
            0x00000000 &&& 0x00030000: tcp_option_aligned;      // an option of 4n bytes (MSS, MPTCP)
            default: accept;
        }
    }

    // The options of a SYN that control/syn_defence.p4 needs.
    state tcp_option_sack {
        meta.syn.sack = 1;
        transition tcp_option_skip;
    }

    state tcp_option_scale_behind {
        meta.syn.window_scale = (bit<4>)packet.lookahead<bit<32>>();
        transition tcp_option_skip;
    }

    state tcp_option_scale_first {
        meta.syn.window_scale = packet.lookahead<bit<24>>()[3:0];
        transition tcp_option_skip;
    }

    state tcp_option_mss {
        meta.syn.mss = (bit<16>)packet.lookahead<bit<32>>();
        transition tcp_option_skip;
    }

    state tcp_option_behind_nops {
        bit<32> word = packet.lookahead<bit<32>>();
        meta.option_words = (word[7:0] + 2) >> 2;
        transition tcp_option_skip;
    }

    state tcp_option_aligned {
        bit<32> word = packet.lookahead<bit<32>>();
        meta.option_words = word[23:16] >> 2;
        transition tcp_option_skip;
    }

    state tcp_option_skip {
        packet.extract(hdr.tcp_options.next);
        meta.option_words = meta.option_words - 1;
        meta.remaining = meta.remaining - 1;
        transition select(meta.option_words, meta.remaining) {
            (0, _): tcp_option;
            (_, 0): accept; // the option is longer than the header: no timestamps found
            default: tcp_option_skip;
        }
    }

    state tcp_sack_timestamp {
        meta.syn.sack = 1;
        transition tcp_timestamp;
    }

    state tcp_timestamp {
        transition select(meta.remaining) {
            1: accept;
            2: accept;
            default: tcp_timestamp_extract;
        }
    }

    state tcp_timestamp_extract {
        packet.extract(hdr.tcp_timestamp);
        meta.remaining = meta.remaining - 3;
        transition select(hdr.tcp.flags) {
            TCP_SYN &&& (TCP_SYN | TCP_ACK): syn_option;
            default: accept;
        }
    }

    // Behind the timestamps of a SYN, stacks have a window scale (Linux) or SACK-permitted (macOS).
    state syn_option {
        transition select(meta.remaining) {
            0: accept;
            default: syn_option_kind;
        }
    }

    state syn_option_kind {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x01010402: syn_option_sack;
            0x04020000: syn_option_sack;
            0x04020101: syn_option_sack;
            0x01030300 &&& 0xffffff00: syn_option_scale;
            default: accept;
        }
    }

    state syn_option_sack {
        meta.syn.sack = 1;
        transition syn_option_extract;
    }

    state syn_option_scale {
        meta.syn.window_scale = (bit<4>)packet.lookahead<bit<32>>();
        transition syn_option_extract;
    }

    state syn_option_extract {
        packet.extract(hdr.syn_options.next);
        meta.remaining = meta.remaining - 1;
        transition syn_option;
    }
}

// Tells the controls why the parser stopped early.
control ParseFailure(inout metadata_t meta, in error parser_error) {
    apply {
        if (parser_error == error.PacketTooShort) {
            meta.parse_failure = DROP_TRUNCATED;
        } else if (parser_error == error.Ipv4HeaderLength) {
            meta.parse_failure = DROP_IPV4_HEADER;
        } else if (parser_error == error.TcpDataOffset) {
            meta.parse_failure = DROP_TCP_HEADER;
        } else if (parser_error == error.TunnelHeader) {
            meta.parse_failure = DROP_TUNNEL_HEADER;
        } else if (parser_error == error.StackOutOfBounds) {
            meta.parse_failure = DROP_VIP_EXTENSION;
        }
    }
}

#endif
