// SPDX-License-Identifier: Apache-2.0
// Reads the cookie of a QUIC packet. Towards the server it is the interface id of a cookie address, or else the
// connection id; towards the client it is the interface id of the source address. One cipher unseals all of them, and
// the leading bits, which are not encrypted, tell the kinds apart (docs/cookie.md). On switches between a server and
// its edge switch, only the dynamic form is unsealed, for its RPT.
control Unseal(in headers_t hdr, inout metadata_t meta) {
    Cookie6Cipher() open;

    apply {
        // The packet may have a sealed cookie at the place where cookies of its direction are.
        bit<1> has_place = 0;
        meta.quic_cookie.kind = QuicCookie.NONE;
        if (meta.direction == Direction.TRANSIT) {
            if (hdr.ipv6.isValid() && meta.role == ROLE_SERVER && meta.cookie_word[63:61] == 0b011) {
                has_place = 1;
            }
        } else if (meta.direction == Direction.UP && meta.at_cookie_address == 0) {
            if (hdr.connection_id.isValid() && hdr.connection_id.length == (bit<5>)(CID_LENGTH - 1)) { // one of ours
                if (hdr.connection_id.config == CID_PLAIN) {
                    meta.quic_cookie.kind = QuicCookie.PLAIN_CID;
                } else if (((hdr.connection_id.config == 0 && meta.cookie_word[60:60] == 0)
                        || (hdr.connection_id.config == 1 && meta.cookie_word[60:60] == 1))
                    && meta.cookie_word[63:61] == 0b100) {
                    has_place = 1;
                }
            }
        } else if (meta.cookie_word[63:62] == 0b01 && meta.cookie_word != meta.dip_id) {
            has_place = 1;
        }

        meta.quic_cookie.epoch = meta.cookie_word[60:60];
        meta.quic_cookie.sid = meta.cookie_word[63:48]; // of a plain connection id
        if (has_place == 1) {
            bit<32> left = meta.cookie_word[59:28]; // SID (16) | RPT (8) | N_AF (8)
            bit<32> right = 4w0 ++ meta.cookie_word[27:0]; // N_FF (8) | x (1) | zero (19)
            bit<1> keyed;
            open.apply(left, right, meta.quic_cookie.epoch, keyed);
            meta.quic_cookie.sid = left[31:16];
            meta.quic_cookie.rpt = left[15:8];
            meta.quic_cookie.n_af = left[7:0];
            meta.quic_cookie.n_ff = right[27:20];
            meta.quic_cookie.x = right[19:19];
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
