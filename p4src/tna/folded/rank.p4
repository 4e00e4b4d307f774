// SPDX-License-Identifier: Apache-2.0
// The edge: the rank in a server's packet, as in control/rank.p4.
#ifndef FRONTAGE_TNA_FOLDED_RANK_P4
#define FRONTAGE_TNA_FOLDED_RANK_P4

control SegmentRank(in headers_t hdr, inout metadata_t meta) {
    // Codes of the TCP carrier below 8 are those of the IPv6 carrier. Of larger ones it has one in two (docs/cookie.md).
    action read_small_code() {
        IN_HASH { meta.cookie_rank = 2w0 ++ hdr.tcp_timestamp.tsval[15:10]; }
    }

    action read_doubled_code() {
        IN_HASH { meta.cookie_rank = 1w0 ++ hdr.tcp_timestamp.tsval[15:10] ++ 1w0; }
    }

    action subtract() {
        meta.cookie_rank = meta.cookie_rank - 8;
    }

    action set_has_rank() {
        meta.has_cookie_rank = 1;
    }

    apply {
        if ((meta.role == ROLE_SERVER || meta.role == ROLE_REAL_SERVER) && hdr.tcp.isValid() && hdr.tcp.ck == 1
            && hdr.tcp_timestamp.isValid()) {
            set_has_rank();
        }
        if (hdr.tcp_timestamp.tsval[15:13] == 0) {
            read_small_code();
        } else {
            read_doubled_code();
            subtract();
        }
    }
}

// A datagram has a rank if its source is a dynamic cookie.
control DatagramRank(in headers_t hdr, inout metadata_t meta) {
    action read_rank() {
        IN_HASH { meta.cookie_rank = meta.opened_left[15:8]; }
    }

    action set_has_rank() {
        meta.has_cookie_rank = 1;
    }

    @hidden table datagram {
        key = {
            hdr.udp.isValid(): ternary;
            hdr.ipv6.isValid(): ternary;
            meta.direction: ternary;
            meta.role: ternary;
            meta.cookie_form: ternary;
            meta.is_keyed: ternary;
            meta.cookie_word[63:61]: ternary;
            meta.opened_right[27:0]: ternary;
        }
        actions = { set_has_rank; NoAction; }
        const entries = {
            (true, true, Direction.TRANSIT, ROLE_SERVER, _, 1, 0b011, 0 &&& 0x7ffff): set_has_rank();
            (true, true, Direction.DOWN, _, FORM_INTERFACE_ID, 1, 0b011, 0 &&& 0x7ffff): set_has_rank();
        }
        const default_action = NoAction();
        size = 2;
    }

    apply {
        if (hdr.udp.isValid()) {
            read_rank();
        }
        datagram.apply();
    }
}

#endif
