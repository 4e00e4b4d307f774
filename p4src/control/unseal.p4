// SPDX-License-Identifier: Apache-2.0
// Reads the cookie of a QUIC packet. Towards the server it is the interface id of a cookie address, or else the
// connection id; towards the client it is the interface id of the source address. One cipher unseals all of them, and
// the leading bits, which are not encrypted, tell the kinds apart (docs/cookie.md). On switches between a server and
// its edge switch, only the dynamic form is unsealed, for its RPT.
control Unseal(in headers_t hdr, inout metadata_t meta) {
    Cookie6Cipher() open;
    bit<32> left;
    bit<32> right;

    // The difference begins as the interface id of the DIP (control/vip.p4).
    action compare_dip() {
        meta.dip_difference = meta.cookie_word ^ meta.dip_difference;
    }

    // SID (16) | RPT (8) | N_AF (8)
    action read_left() {
        IN_HASH { left = meta.cookie_word[59:28]; }
    }

    // N_FF (8) | x (1) | zero (19)
    action read_right() {
        IN_HASH { right = 4w0 ++ meta.cookie_word[27:0]; }
    }

    action read_form() {
        IN_HASH {
            meta.quic_cookie.epoch = meta.cookie_word[60:60];
            meta.quic_cookie.sid = meta.cookie_word[63:48]; // of a plain connection id
        }
    }

    action open_left() {
        IN_HASH {
            meta.quic_cookie.sid = left[31:16];
            meta.quic_cookie.rpt = left[15:8];
            meta.quic_cookie.n_af = left[7:0];
        }
    }

    action open_right() {
        IN_HASH {
            meta.quic_cookie.n_ff = right[27:20];
            meta.quic_cookie.x = right[19:19];
        }
    }

    apply {
        compare_dip();
        if (meta.dip_difference[63:32] == 0) {
            if (meta.dip_difference[31:0] == 0) {
                meta.is_from_dip = 1;
            }
        }

        // The packet may have a sealed cookie at the place where cookies of its direction are.
        bit<1> is_sealed = 0;
        meta.quic_cookie.kind = QuicCookie.NONE;
        if (meta.direction == Direction.TRANSIT) {
            if (hdr.ipv6.isValid() && meta.role == ROLE_SERVER && meta.cookie_word[63:61] == 0b011) {
                is_sealed = 1;
            }
        } else if (meta.direction == Direction.UP && meta.at_cookie_address == 0) {
            if (hdr.connection_id.isValid() && hdr.connection_id.length == (bit<5>)(CID_LENGTH - 1)) { // one of ours
                if (hdr.connection_id.config == CID_PLAIN) {
                    meta.quic_cookie.kind = QuicCookie.PLAIN_CID;
                } else if (((hdr.connection_id.config == 0 && meta.cookie_word[60:60] == 0)
                        || (hdr.connection_id.config == 1 && meta.cookie_word[60:60] == 1))
                    && meta.cookie_word[63:61] == 0b100) {
                    is_sealed = 1;
                }
            }
        } else if (meta.cookie_word[63:62] == 0b01 && meta.is_from_dip == 0) {
            is_sealed = 1;
        }

        if (is_sealed == 1 || meta.quic_cookie.kind == QuicCookie.PLAIN_CID) {
            meta.quic_cookie.has_form = 1;
        }
        read_form();
        if (is_sealed == 1) {
            bit<1> keyed;
            read_left();
            read_right();
            open.apply(left, right, meta.quic_cookie.epoch, keyed);
            open_left();
            open_right();
            if (keyed == 1 && right[18:0] == 0) {
                if (meta.cookie_word[63:61] == 0b011) {
                    meta.quic_cookie.kind = QuicCookie.DYNAMIC;
                } else if (right[19:19] == 0) {
                    if (meta.cookie_word[63:61] == 0b010 && left[15:0] == 0 && right[27:20] == 0) {
                        meta.quic_cookie.kind = QuicCookie.STATIC;
                    } else if (meta.cookie_word[63:61] == 0b100 && (left[15:0] != 0 || right[27:20] != 0)) {
                        meta.quic_cookie.kind = QuicCookie.SEALED_CID;
                    }
                }
            }
        }
    }
}
