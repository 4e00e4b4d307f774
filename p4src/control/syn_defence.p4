// SPDX-License-Identifier: Apache-2.0
// Defence against SYN floods (docs/syn-flood.md). While a VIP is under attack, the switch answers SYNs itself. The
// initial sequence number of the answer is a keyed hash of what the client sent, so the switch keeps no state. A client
// that has received the answer proves it by its acknowledgment. The switch verifies the number and forwards the packet to
// the server, whose agent verifies it again and creates the connection.
//
//     sequence number    epoch (1) | age (2) | MSS (3) | hash (26)
//     TSval              clock, whose low 5 bits are window scale (4) | SACK (1), over the cookie of the server
//
// This control decides; syn_answer.p4 writes the answer.
control SynDefence(inout headers_t hdr, inout metadata_t meta) {
    bit<1> sealing_epoch;
    bit<64> secret;
    bit<1> has_secret;
    bit<16> clock_offset;

    // The VIP is not under attack: SYNs pass. Answers to earlier SYNs still count.
    action watch() {
        meta.syn.mode = SYN_WATCHED;
    }

    action answer(bit<16> mss, bit<1> is_only_switch) {
        meta.syn.mode = SYN_ANSWERED;
        meta.syn.is_only_switch = is_only_switch;
        meta.syn.server_mss = mss;
    }

    table vip {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { watch; answer; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    action set_active_key(bit<1> epoch) {
        sealing_epoch = epoch;
    }

    table active_key {
        actions = { set_active_key; }
        default_action = set_active_key(0);
    }

    action set_secret(bit<64> key) {
        secret = key;
        has_secret = 1;
    }

    table secrets {
        key = { meta.syn.head[5:5]: exact @name("epoch"); }
        actions = { set_secret; NoAction; }
        const default_action = NoAction();
        size = 2;
    }

    // Masking adds this to the clock in TSval. The cookie below it has the epoch.
    action set_clock_offset(bit<16> offset) {
        clock_offset = offset;
    }

    table clock {
        key = { hdr.tcp_timestamp.tsecr[15:15]: exact @name("epoch"); }
        actions = { set_clock_offset; NoAction; }
        const default_action = NoAction();
        size = 2;
    }

    apply {
        clock_offset = 0;
        bit<32> client_isn = hdr.tcp.seq;
        bit<16> options = 0; // timestamps (1) | window scale (4) | SACK (1)
        vip.apply();
        if (meta.syn.mode != SYN_UNDEFENDED) {
            if ((hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
                if (meta.syn.mode == SYN_ANSWERED) {
                    meta.syn.answers = 1;
                    active_key.apply();
                    bit<3> mss_code = 0;
                    if (meta.syn.mss >= 8940) {
                        mss_code = 7;
                    } else if (meta.syn.mss >= 1460) {
                        mss_code = 6;
                    } else if (meta.syn.mss >= 1440) {
                        mss_code = 5;
                    } else if (meta.syn.mss >= 1400) {
                        mss_code = 4;
                    } else if (meta.syn.mss >= 1300) {
                        mss_code = 3;
                    } else if (meta.syn.mss >= 1220) {
                        mss_code = 2;
                    } else if (meta.syn.mss >= 1024) {
                        mss_code = 1;
                    }
                    meta.syn.head = sealing_epoch ++ meta.now[7:6] ++ mss_code;
                    if (hdr.tcp_timestamp.isValid()) {
                        options = 10w0 ++ 1w1 ++ meta.syn.window_scale ++ meta.syn.sack;
                    }
                }
            } else if ((hdr.tcp.flags & (TCP_SYN | TCP_RST | TCP_ACK)) == TCP_ACK) {
                bit<32> isn = hdr.tcp.ack - 1;
                bit<2> age = meta.now[7:6] - isn[30:29];
                if (age[1:1] == 0) {
                    meta.syn.completes = 1;
                }
                meta.syn.head = isn[31:26];
                client_isn = hdr.tcp.seq - 1;
                if (hdr.tcp_timestamp.isValid()) {
                    clock.apply();
                    bit<16> answer_clock = hdr.tcp_timestamp.tsecr[31:16] - clock_offset;
                    options = 10w0 ++ 1w1 ++ answer_clock[4:0];
                }
            }
        }

        if (meta.syn.answers == 1 || meta.syn.completes == 1) {
            has_secret = 0;
            secret = 0;
            secrets.apply();
            siphash_t state;
            siphash_begin(state, secret);
            bit<8> bytes = 12;
            bit<32> address = hdr.ipv4.src;
            if (hdr.ipv6.isValid()) {
                bytes = 24;
                address = hdr.ipv6.src[31:0];
                siphash_word(state, hdr.ipv6.src[127:96]);
                siphash_word(state, hdr.ipv6.src[95:64]);
                siphash_word(state, hdr.ipv6.src[63:32]);
            }
            siphash_word(state, address);
            siphash_word(state, hdr.ports.src_port ++ meta.syn.head ++ options[9:0]);
            siphash_word(state, client_isn);
            bit<32> result;
            siphash_end(state, bytes, result);
            meta.syn.isn = meta.syn.head ++ result[25:0];
            if (meta.syn.completes == 1 && (has_secret == 0 || meta.syn.isn != hdr.tcp.ack - 1)) {
                meta.syn.completes = 0;
            }
            meta.syn.clock = meta.now[15:5] ++ options[4:0];
            if (meta.syn.completes == 1 && hdr.tcp_timestamp.isValid()) {
                // The agent does not know the offset.
                hdr.tcp_timestamp.tsecr[31:16] = hdr.tcp_timestamp.tsecr[31:16] - clock_offset;
            }
        }

        // An acknowledgment without data counts as the connection's first packet.
        if (meta.syn.completes == 1) {
            bit<16> headers = 10w0 ++ hdr.tcp.data_offset ++ 2w0;
            if (hdr.ipv4.isValid()) {
                if (hdr.ipv4.total_length == headers + meta.ipv4_header_length) {
                    meta.syn.counts = 1;
                }
            } else if (hdr.ipv6.payload_length == headers + meta.extension_bytes) {
                meta.syn.counts = 1;
            }
        }
    }
}
