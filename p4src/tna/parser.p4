// SPDX-License-Identifier: Apache-2.0
// The parser of ingress: from Ethernet to the TCP timestamp option or QUIC's connection id, behind the outer headers of a
// tunnel if there are any. It does what v1model's parser does, as Tofino's parsers can: with a counter instead of
// arithmetic, without verify(), and a state selects only by what it extracts.
//
// The residues are the one's complement sums of the IPv4 and the transport checksum without the fields that may be
// rewritten (checksum.p4).
#ifndef FRONTAGE_TNA_PARSER_P4
#define FRONTAGE_TNA_PARSER_P4

// The back end refuses a counter whose state it has to split, so options have own states instead of loops. It does not split
// the states of tofino1.
#if defined(COMPACT) && !defined(WITHOUT_QUIC)
#define WITHOUT_PARSER_COUNTER
#endif

#define IPV4_OPTION(state_name, index, next_state) \
    state state_name { \
        packet.extract(hdr.ipv4_options[index]); \
        transition next_state; \
    }

#define IPV4_OPTIONS_THEN(protocol) \
    IPV4_OPTION(option10_then_##protocol, 0, option9_then_##protocol) \
    IPV4_OPTION(option9_then_##protocol, 1, option8_then_##protocol) \
    IPV4_OPTION(option8_then_##protocol, 2, option7_then_##protocol) \
    IPV4_OPTION(option7_then_##protocol, 3, option6_then_##protocol) \
    IPV4_OPTION(option6_then_##protocol, 4, option5_then_##protocol) \
    IPV4_OPTION(option5_then_##protocol, 5, option4_then_##protocol) \
    IPV4_OPTION(option4_then_##protocol, 6, option3_then_##protocol) \
    IPV4_OPTION(option3_then_##protocol, 7, option2_then_##protocol) \
    IPV4_OPTION(option2_then_##protocol, 8, option1_then_##protocol) \
    IPV4_OPTION(option1_then_##protocol, 9, protocol)

parser FrontageIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                             out ingress_intrinsic_metadata_t ig_intr_md) {
#ifndef WITHOUT_PARSER_COUNTER
    ParserCounter() counter;
#endif
#ifndef WITHOUT_TCP
    Checksum() ipv4_checksum;
#endif
    Checksum() ipv4_residue;
    Checksum() transport_checksum;

    state start {
        packet.extract(ig_intr_md);
        transition select(ig_intr_md.resubmit_flag, ig_intr_md.ingress_port) {
            (1, _): second_pass;
#ifdef FOUR_PIPES
            default: from_switch; // all ports are in loopback
        }
    }

#else
            (0, CPU_PORT): from_controller;
#ifdef FOLDED
            (0, CORE_PORT &&& CORE_PORT): from_switch;
#else
            (0, RECIRCULATION_PORT &&& 0x7f): from_switch;
#endif
            default: from_network;
        }
    }

    state from_controller {
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state from_network {
        packet.advance(PORT_METADATA_SIZE);
        transition ethernet;
    }
#endif

    state from_switch {
        packet.advance(PORT_METADATA_SIZE);
        bit<8> kind = packet.lookahead<bit<8>>();
        transition select(kind) {
            INTERNAL_WORKER: worker;
#ifdef FOLDED
            INTERNAL_FOLD: fold;
#endif
#ifdef FOUR_PIPES
            INTERNAL_GATE: gate;
            INTERNAL_SITE: site;
            INTERNAL_REMOTE: remote;
#endif
        }
    }

#ifdef FOUR_PIPES
    state gate {
        packet.extract(hdr.gate);
        transition ethernet;
    }

    state remote {
        packet.extract(hdr.remote);
        transition site;
    }

    state site {
        packet.extract(hdr.site);
        transition select(hdr.site.has_new_client) {
            1: new_client;
            default: gate_then_fold;
        }
    }

    state new_client {
        packet.extract(hdr.new_client);
        transition gate_then_fold;
    }

    state gate_then_fold {
        packet.extract(hdr.gate);
        transition fold;
    }
#endif

#ifdef FOLDED
    state fold {
        packet.extract(hdr.fold);
        transition ethernet;
    }
#endif

    state worker {
        packet.extract(hdr.worker);
        transition accept;
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            ETHERTYPE_ARP: arp;
            default: accept;
        }
    }

#ifdef WITHOUT_QUIC
    state second_pass {
        transition reject;
    }
#elif defined(FOLDED)
    state second_pass {
        packet.extract(hdr.second_pass);
#ifdef FOUR_PIPES
        bit<8> kind = packet.lookahead<bit<8>>();
        transition select(kind) {
            INTERNAL_REMOTE: remote;
            default: site;
        }
#else
        transition fold;
#endif
    }
#elif defined(WITHOUT_STEERING)
    state second_pass {
        packet.extract(hdr.second_pass);
        transition ethernet;
    }
#else
    state second_pass {
        packet.extract(hdr.second_pass);
        transition select(hdr.second_pass.kind) {
            SECOND_PASS_TUNNEL: tunnel_pass;
            default: ethernet;
        }
    }

    state tunnel_pass {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: outer_ipv4;
            default: outer_ipv6;
        }
    }

    // The outer headers of a tunnel that control/tunnel.p4 accepted. The inner packet is then parsed like any other.
    state outer_ipv4 {
        packet.extract(hdr.outer_ipv4);
        transition select(hdr.outer_ipv4.protocol) {
            PROTO_UDP: vxlan;
            default: gre;
        }
    }

    state outer_ipv6 {
        packet.extract(hdr.outer_ipv6);
        transition select(hdr.outer_ipv6.next_header) {
            PROTO_UDP: vxlan;
            default: gre;
        }
    }

    state vxlan {
        packet.extract(hdr.outer_ports);
        packet.extract(hdr.outer_udp);
        packet.extract(hdr.vxlan);
        packet.extract(hdr.inner_ethernet);
        transition select(hdr.vxlan.flags, hdr.inner_ethernet.ether_type) {
            (VXLAN_HAS_VNI &&& VXLAN_HAS_VNI, ETHERTYPE_IPV4): ipv4;
            (VXLAN_HAS_VNI &&& VXLAN_HAS_VNI, ETHERTYPE_IPV6): ipv6;
            (VXLAN_HAS_VNI &&& VXLAN_HAS_VNI, ETHERTYPE_ARP): arp;
            (VXLAN_HAS_VNI &&& VXLAN_HAS_VNI, _): accept;
            default: bad_tunnel;
        }
    }

    state gre {
        packet.extract(hdr.gre);
        transition select(hdr.gre.flags, hdr.gre.protocol) {
            (GRE_HAS_KEY, ETHERTYPE_IPV4): ipv4;
            (GRE_HAS_KEY, ETHERTYPE_IPV6): ipv6;
            (GRE_HAS_KEY, ETHERTYPE_ARP): arp;
            (GRE_HAS_KEY, _): accept;
            default: bad_tunnel;
        }
    }

    state bad_tunnel {
        meta.parse_failure = DROP_TUNNEL_HEADER;
        transition accept;
    }
#endif

    state arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    // The sum covers only the header without options, so ingress ignores it for headers with options (frontage.p4).
    state ipv4 {
        packet.extract(hdr.ipv4);
        meta.protocol = hdr.ipv4.protocol;
#ifdef WITHOUT_TCP
        ipv4_residue.subtract(hdr.ipv4);
#else
        ipv4_checksum.add(hdr.ipv4);
        meta.bad_ipv4_checksum = (bit<1>)ipv4_checksum.verify();
        ipv4_residue.subtract({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.ttl, hdr.ipv4.protocol,
                                hdr.ipv4.checksum, hdr.ipv4.src, hdr.ipv4.dst });
#endif
        meta.ipv4_residue = ipv4_residue.get();
        transport_checksum.subtract({ hdr.ipv4.src, hdr.ipv4.dst });
#ifdef WITHOUT_PARSER_COUNTER
        transition select(hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0 &&& 0xc, _, _, _): ipv4_too_short;
            (4, _, _, _): ipv4_too_short;
            (5, 0, 0, PROTO_UDP): udp;
            (6, 0, 0, PROTO_UDP): option1_then_udp;
            (7, 0, 0, PROTO_UDP): option2_then_udp;
            (8, 0, 0, PROTO_UDP): option3_then_udp;
            (9, 0, 0, PROTO_UDP): option4_then_udp;
            (10, 0, 0, PROTO_UDP): option5_then_udp;
            (11, 0, 0, PROTO_UDP): option6_then_udp;
            (12, 0, 0, PROTO_UDP): option7_then_udp;
            (13, 0, 0, PROTO_UDP): option8_then_udp;
            (14, 0, 0, PROTO_UDP): option9_then_udp;
            (15, 0, 0, PROTO_UDP): option10_then_udp;
#ifndef WITHOUT_TCP
            (5, 0, 0, PROTO_TCP): tcp;
            (6, 0, 0, PROTO_TCP): option1_then_tcp;
            (7, 0, 0, PROTO_TCP): option2_then_tcp;
            (8, 0, 0, PROTO_TCP): option3_then_tcp;
            (9, 0, 0, PROTO_TCP): option4_then_tcp;
            (10, 0, 0, PROTO_TCP): option5_then_tcp;
            (11, 0, 0, PROTO_TCP): option6_then_tcp;
            (12, 0, 0, PROTO_TCP): option7_then_tcp;
            (13, 0, 0, PROTO_TCP): option8_then_tcp;
            (14, 0, 0, PROTO_TCP): option9_then_tcp;
            (15, 0, 0, PROTO_TCP): option10_then_tcp;
#endif
            (5, 0, 0, PROTO_ICMP): icmp;
            (6, 0, 0, PROTO_ICMP): option1_then_icmp;
            (7, 0, 0, PROTO_ICMP): option2_then_icmp;
            (8, 0, 0, PROTO_ICMP): option3_then_icmp;
            (9, 0, 0, PROTO_ICMP): option4_then_icmp;
            (10, 0, 0, PROTO_ICMP): option5_then_icmp;
            (11, 0, 0, PROTO_ICMP): option6_then_icmp;
            (12, 0, 0, PROTO_ICMP): option7_then_icmp;
            (13, 0, 0, PROTO_ICMP): option8_then_icmp;
            (14, 0, 0, PROTO_ICMP): option9_then_icmp;
            (15, 0, 0, PROTO_ICMP): option10_then_icmp;
            (_, 0, 0, _): accept;
            default: fragment;
        }
    }

    // Each protocol has its own states, because only the state before knows the protocol. The last option is always the last of
    // the stack.
    IPV4_OPTIONS_THEN(udp)
    IPV4_OPTIONS_THEN(icmp)
#ifndef WITHOUT_TCP
    IPV4_OPTIONS_THEN(tcp)
#endif

    state ipv4_too_short {
        meta.parse_failure = DROP_IPV4_HEADER;
        transition accept;
    }
#else
        counter.set(hdr.ipv4.ihl, 15, 0, COUNTER_MASK_4, 0xfb); // words of options: ihl - 5
        transition select(hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, 0, PROTO_TCP): tcp;
            (5, 0, 0, PROTO_UDP): udp;
            (5, 0, 0, PROTO_ICMP): icmp;
            (5, 0, 0, _): accept;
            (5, _, _, _): fragment;
            (0 &&& 0xc, _, _, _): ipv4_too_short;
            (4, _, _, _): ipv4_too_short;
            (_, 0, 0, PROTO_TCP): options_then_tcp;
            (_, 0, 0, PROTO_UDP): options_then_udp;
            (_, 0, 0, PROTO_ICMP): options_then_icmp;
            (_, 0, 0, _): options_then_accept;
            default: options_then_fragment;
        }
    }

    state ipv4_too_short {
        meta.parse_failure = DROP_IPV4_HEADER;
        transition accept;
    }

    // Each protocol has a loop of its own, because only the state before knows the protocol.
    state options_then_tcp {
        packet.extract(hdr.ipv4_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp;
            false: options_then_tcp;
        }
    }

    state options_then_udp {
        packet.extract(hdr.ipv4_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: udp;
            false: options_then_udp;
        }
    }

    state options_then_icmp {
        packet.extract(hdr.ipv4_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: icmp;
            false: options_then_icmp;
        }
    }

    state options_then_fragment {
        packet.extract(hdr.ipv4_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: fragment;
            false: options_then_fragment;
        }
    }

    state options_then_accept {
        packet.extract(hdr.ipv4_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: accept;
            false: options_then_accept;
        }
    }
#endif

    state fragment {
        meta.is_fragment = 1;
        transition accept;
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        meta.protocol = hdr.ipv6.next_header;
        transport_checksum.subtract({ hdr.ipv6.src, hdr.ipv6.dst });
        transition select(hdr.ipv6.next_header, hdr.ipv6.payload_length) {
            (PROTO_HOPOPT, _): ipv6_extension0;
            (PROTO_ROUTING, _): ipv6_extension0;
            (PROTO_DSTOPT, _): ipv6_extension0;
            (PROTO_FRAGMENT, _): fragment;
            (PROTO_TCP, _): tcp;
            (PROTO_UDP, _): udp;
            (PROTO_ICMPV6, 24): icmpv6_without_option;
            (PROTO_ICMPV6, _): icmpv6;
            default: accept;
        }
    }

    // Extension headers of 8 bytes, of which a packet to a VIP may have two. Others need more states than the parser has.
    state ipv6_extension0 {
        packet.extract(hdr.ipv6_extensions[0]);
        meta.protocol = hdr.ipv6_extensions[0].next_header;
        transition select(hdr.ipv6_extensions[0].next_header, hdr.ipv6_extensions[0].length) {
            (PROTO_HOPOPT, 0): ipv6_extension1;
            (PROTO_ROUTING, 0): ipv6_extension1;
            (PROTO_DSTOPT, 0): ipv6_extension1;
            (PROTO_FRAGMENT, 0): fragment;
            (PROTO_TCP, 0): tcp;
            (PROTO_UDP, 0): udp;
            (PROTO_ICMPV6, 0): icmpv6;
            (_, 0): accept;
            default: long_extension;
        }
    }

    state ipv6_extension1 {
        packet.extract(hdr.ipv6_extensions[1]);
        meta.protocol = hdr.ipv6_extensions[1].next_header;
        transition select(hdr.ipv6_extensions[1].next_header, hdr.ipv6_extensions[1].length) {
            (PROTO_HOPOPT, 0): long_extension;
            (PROTO_ROUTING, 0): long_extension;
            (PROTO_DSTOPT, 0): long_extension;
            (PROTO_FRAGMENT, 0): fragment;
            (PROTO_TCP, 0): tcp;
            (PROTO_UDP, 0): udp;
            (PROTO_ICMPV6, 0): icmpv6;
            (_, 0): accept;
            default: long_extension;
        }
    }

    state long_extension {
        meta.parse_failure = DROP_VIP_EXTENSION;
        transition accept;
    }

    state icmp {
        packet.extract(hdr.icmp);
        transition accept;
    }

    state icmpv6 {
        packet.extract(hdr.icmp);
        transition select(hdr.icmp.icmp_type) {
            NDP_SOLICITATION: ndp_with_option;
#ifndef WITHOUT_LEARNING
            NDP_ADVERTISEMENT: ndp_with_option;
#endif
            default: accept;
        }
    }

    state ndp_with_option {
        packet.extract(hdr.ndp);
        packet.extract(hdr.ndp_option);
        transition accept;
    }

    // A solicitation without an option is duplicate address detection. An advertisement without one confirms an address.
    state icmpv6_without_option {
        packet.extract(hdr.icmp);
        transition select(hdr.icmp.icmp_type) {
            NDP_SOLICITATION: ndp;
#ifndef WITHOUT_LEARNING
            NDP_ADVERTISEMENT: ndp;
#endif
            default: accept;
        }
    }

    state ndp {
        packet.extract(hdr.ndp);
        transition accept;
    }

#ifdef WITHOUT_QUIC
    state udp {
        packet.extract(hdr.ports);
        packet.extract(hdr.udp);
        transition accept;
    }
#else
    // Only the version-independent part of QUIC is parsed (RFC 8999). Any datagram can be read as that.
    state udp {
        packet.extract(hdr.ports);
        packet.extract(hdr.udp);
        transport_checksum.subtract({ hdr.ports.src_port, hdr.ports.dst_port, hdr.udp.checksum });
        meta.transport_residue = transport_checksum.get();
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
#endif

#ifdef WITHOUT_TCP
    state tcp {
        transition accept;
    }
#else
    // Masking rewrites the word of data_offset to flags, and TSval.
    state tcp {
        packet.extract(hdr.ports);
        packet.extract(hdr.tcp);
        transport_checksum.subtract({ hdr.ports.src_port, hdr.ports.dst_port, hdr.tcp.checksum,
                                      hdr.tcp.data_offset, hdr.tcp.ck, hdr.tcp.second_hop, hdr.tcp.reserved,
                                      hdr.tcp.flags });
#ifdef WITHOUT_PARSER_COUNTER
        transition select(hdr.tcp.data_offset) {
            5: tcp_end;
            0 .. 4: tcp_too_short;
            6: tcp_word;
            7: tcp_word;
            8: timestamp_of_3_words;
            9: mss_of_4_words;
            default: mss_of_5_words;
        }
    }
#else
        counter.set(hdr.tcp.data_offset, 15, 0, COUNTER_MASK_4, 0xfb); // words of options: data_offset - 5
        transition select(hdr.tcp.data_offset) {
            5: tcp_end;
            0 .. 4: tcp_too_short;
            default: tcp_option;
        }
    }
#endif

    state tcp_too_short {
        meta.parse_failure = DROP_TCP_HEADER;
        transition accept;
    }

#ifdef WITHOUT_PARSER_COUNTER
    // The layouts of the operating systems in use: timestamps come first, after the MSS, or after the MSS and the window scale.
    // Any other layout ends the walk, and the connection is served without a cookie (control/fallback.p4). The name of a state
    // tells how many words are left.
    state tcp_word {
        packet.extract(hdr.tcp_options[0]);
        transition tcp_end;
    }

    state timestamp_of_3_words {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: tcp_timestamp;
            0x0402080a: tcp_timestamp;
            default: tcp_end;
        }
    }

    state mss_of_4_words {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: tcp_timestamp;
            0x0402080a: tcp_timestamp;
            0x02040000 &&& 0xffff0000: last_word;
            default: tcp_end;
        }
    }

    state last_word {
        packet.extract(hdr.tcp_options[1]);
        transition timestamp_of_3_words;
    }

    state mss_of_5_words {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: tcp_timestamp;
            0x0402080a: tcp_timestamp;
            0x02040000 &&& 0xffff0000: mss_word;
            default: tcp_end;
        }
    }

    state mss_word {
        packet.extract(hdr.tcp_options[0]);
        transition window_scale_of_4_words;
    }

    state window_scale_of_4_words {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: tcp_timestamp;
            0x0402080a: tcp_timestamp;
            0x01030300 &&& 0xffffff00: last_word;
            default: tcp_end;
        }
    }

    state tcp_timestamp {
        packet.extract(hdr.tcp_timestamp);
        transport_checksum.subtract({ hdr.tcp_timestamp.tsval });
        transition tcp_end;
    }

#else
#ifdef COMPACT
    // The same layouts, with a counter. A loop would need more match registers than the parser has.
    state tcp_option {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: tcp_timestamp;
            0x0402080a: tcp_timestamp;
            0x02040000 &&& 0xffff0000: tcp_option1;
            default: tcp_end;
        }
    }

    state tcp_option1 {
        packet.extract(hdr.tcp_options[0]);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_option2;
        }
    }

    state tcp_option2 {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: tcp_timestamp;
            0x0402080a: tcp_timestamp;
            0x01030300 &&& 0xffffff00: tcp_option3;
            default: tcp_end;
        }
    }

    state tcp_option3 {
        packet.extract(hdr.tcp_options[1]);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_option4;
        }
    }

    state tcp_option4 {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: tcp_timestamp;
            0x0402080a: tcp_timestamp;
            default: tcp_end;
        }
    }

#else
    // The parser walks options one 32-bit word at a time, because every TCP in use aligns them: it recognises an option at
    // the start of a word or after two NOPs. Any other layout ends the walk, and the connection is served without a cookie
    // (control/fallback.p4).
    state tcp_option {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: tcp_timestamp;                  // NOP NOP TS
            0x0402080a: tcp_timestamp;                  // SACK-permitted TS
            0x01010101: tcp_skip1;
            0x01010402: tcp_skip1;                      // NOP NOP SACK-permitted
            0x04020101: tcp_skip1;
            0x01030300 &&& 0xffffff00: tcp_skip1;       // NOP window scale
            0x03030001 &&& 0xffff00ff: tcp_skip1;
            0x01010100 &&& 0xffffff00: tcp_end;         // three NOPs and one byte of the next option
            0x01010000 &&& 0xffffff00: tcp_end;         // end of options
            0x01010800 &&& 0xffffff00: tcp_end;         // timestamps with a wrong length
            // two NOPs and an option of 4n + 2 bytes (SACK, MD5)
            0x01010002 &&& 0xffff00ff: tcp_skip1;
            0x01010006 &&& 0xffff00ff: tcp_skip2;
            0x0101000a &&& 0xffff00ff: tcp_skip3;
            0x0101000e &&& 0xffff00ff: tcp_skip4;
            0x01010012 &&& 0xffff00ff: tcp_skip5;
            0x01010016 &&& 0xffff00ff: tcp_skip6;
            0x0101001a &&& 0xffff00ff: tcp_skip7;
            0x0101001e &&& 0xffff00ff: tcp_skip8;
            0x01010022 &&& 0xffff00ff: tcp_skip9;
            0x01010026 &&& 0xffff00ff: tcp_skip10;
            0x01010002 &&& 0xffff0003: tcp_skip_rest;   // longer than the header
            0x01000000 &&& 0xff000000: tcp_end;
            0x00000000 &&& 0xff000000: tcp_end;         // end of options
            // an option of 4n bytes (MSS, MPTCP)
            0x00040000 &&& 0x00ff0000: tcp_skip1;
            0x00080000 &&& 0x00ff0000: tcp_skip2;
            0x000c0000 &&& 0x00ff0000: tcp_skip3;
            0x00100000 &&& 0x00ff0000: tcp_skip4;
            0x00140000 &&& 0x00ff0000: tcp_skip5;
            0x00180000 &&& 0x00ff0000: tcp_skip6;
            0x001c0000 &&& 0x00ff0000: tcp_skip7;
            0x00200000 &&& 0x00ff0000: tcp_skip8;
            0x00240000 &&& 0x00ff0000: tcp_skip9;
            0x00280000 &&& 0x00ff0000: tcp_skip10;
            0x00000000 &&& 0x00ff0000: tcp_end;         // length zero
            0x00000000 &&& 0x00030000: tcp_skip_rest;   // longer than the header
            default: tcp_end;
        }
    }

    state tcp_skip10 {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_skip9;
        }
    }

    state tcp_skip9 {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_skip8;
        }
    }

    state tcp_skip8 {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_skip7;
        }
    }

    state tcp_skip7 {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_skip6;
        }
    }

    state tcp_skip6 {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_skip5;
        }
    }

    state tcp_skip5 {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_skip4;
        }
    }

    state tcp_skip4 {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_skip3;
        }
    }

    state tcp_skip3 {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_skip2;
        }
    }

    state tcp_skip2 {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_skip1;
        }
    }

    state tcp_skip1 {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_option;
        }
    }

    state tcp_skip_rest {
        packet.extract(hdr.tcp_options.next);
        counter.decrement(1);
        transition select(counter.is_zero()) {
            true: tcp_end;
            false: tcp_skip_rest;
        }
    }

#endif

    state tcp_timestamp {
        counter.decrement(3);
        transition select(counter.is_negative()) {
            true: tcp_end;
            false: tcp_timestamp_extract;
        }
    }

    state tcp_timestamp_extract {
        packet.extract(hdr.tcp_timestamp);
        transport_checksum.subtract({ hdr.tcp_timestamp.tsval });
        transition tcp_end;
    }
#endif

    state tcp_end {
        meta.transport_residue = transport_checksum.get();
        transition accept;
    }
#endif
}

#endif
