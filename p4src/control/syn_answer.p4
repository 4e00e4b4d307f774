// SPDX-License-Identifier: Apache-2.0
// Answers a SYN in the server's place (docs/syn-flood.md), and counts the packets of the defence. The answer leaves as the
// SYN-ACK of the server that the policy chose: masking.p4 seals that server's cookie into TSval.
control SynAnswer(inout headers_t hdr, inout metadata_t meta) {
    SynCounter() packets;
    SynAnswerChecksum() checksum; // checksum.p4 of the architecture

    action answer_client() {
        meta.verdict = VERDICT_REPLY;
        meta.direction = Direction.DOWN;
        meta.outcome = OUTCOME_SYN_ANSWERED;
        meta.egress_port = meta.ingress_port;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.port_mac;
        bit<16> client_port = hdr.ports.src_port;
        hdr.ports.src_port = hdr.ports.dst_port;
        hdr.ports.dst_port = client_port;
        hdr.tcp.ack = hdr.tcp.seq + 1;
        hdr.tcp.seq = meta.syn.isn;
        hdr.tcp.ck = hdr.tcp_timestamp.isValid() ? 1w1 : 1w0;
        hdr.tcp.reserved = 0;
        hdr.tcp.flags = TCP_SYN | TCP_ACK;
        hdr.tcp.window = 0xffff;
        hdr.tcp.urgent = 0;
    }

    action write_mss() {
        hdr.tcp_options.pop_front(TCP_OPTION_WORDS);
        hdr.tcp_options.push_front(1);
        hdr.tcp_options[0].setValid();
        hdr.tcp_options[0].data = 16w0x0204 ++ meta.syn.server_mss;
    }

    action write_timestamp() {
        hdr.tcp_timestamp.before = 0x0101; // two NOPs
        if (meta.syn.sack == 1) {
            hdr.tcp_timestamp.before = 0x0402; // SACK-permitted
        }
        hdr.tcp_timestamp.tsecr = hdr.tcp_timestamp.tsval;
        hdr.tcp_timestamp.tsval = meta.syn.clock ++ 16w0;
    }

    action write_window_scale() {
        hdr.syn_options.pop_front(SYN_OPTION_WORDS);
        hdr.syn_options.push_front(1);
        hdr.syn_options[0].setValid();
        hdr.syn_options[0].data = 0x01030300 | (bit<32>)SYN_WINDOW_SCALE;
    }

    action write_ipv4(bit<16> length) {
        ipv4_t client = hdr.ipv4.src;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = client;
        hdr.ipv4_options.pop_front(IPV4_OPTION_WORDS);
        hdr.ipv4.ihl = 5;
        hdr.ipv4.tos = 0;
        hdr.ipv4.total_length = 20 + length;
        hdr.ipv4.identification = 0;
        hdr.ipv4.reserved = 0;
        hdr.ipv4.dont_fragment = 1;
        hdr.ipv4.ttl = 64;
    }

    action write_ipv6(bit<16> length) {
        ipv6_t client = hdr.ipv6.src;
        hdr.ipv6.src = hdr.ipv6.dst;
        hdr.ipv6.dst = client;
        hdr.ipv6_extensions.pop_front(IPV6_EXTENSION_UNITS);
        hdr.ipv6.traffic_class = 0;
        hdr.ipv6.payload_length = length;
        hdr.ipv6.next_header = PROTO_TCP;
        hdr.ipv6.hop_limit = 64;
    }

    apply {
        if (meta.syn.mode != SYN_UNDEFENDED && meta.verdict != VERDICT_RESUBMIT) {
            bit<1> counts = 1;
            bit<2> kind = SYNS_PASSED;
            if (meta.verdict == DROP_SYN_COOKIE) {
                kind = SYNS_REFUSED;
            } else if (meta.syn.answers == 1) {
                kind = SYNS_ANSWERED;
            } else if (meta.syn.completes == 1 && meta.syn.counts == 1) {
                kind = SYNS_COMPLETED;
            } else if ((hdr.tcp.flags & (TCP_SYN | TCP_ACK)) != TCP_SYN) {
                counts = 0;
            }
            if (counts == 1) {
                packets.apply(meta.vip_id, kind);
            }
        }
        if (meta.syn.answers == 1 && meta.verdict == VERDICT_CONTINUE) {
            answer_client();
            write_mss();
            bit<16> length = 24; // of the segment
            hdr.tcp.data_offset = 6;
            if (hdr.tcp_timestamp.isValid()) {
                write_timestamp();
                if (meta.syn.window_scale != SYN_NO_WINDOW_SCALE) {
                    write_window_scale();
                    length = 40;
                    hdr.tcp.data_offset = 10;
                } else {
                    hdr.syn_options.pop_front(SYN_OPTION_WORDS);
                    length = 36;
                    hdr.tcp.data_offset = 9;
                }
            }
            if (hdr.ipv4.isValid()) {
                write_ipv4(length);
            } else {
                write_ipv6(length);
            }
            checksum.apply(hdr, meta, length);
        }
    }
}
