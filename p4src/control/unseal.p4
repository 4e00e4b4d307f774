// SPDX-License-Identifier: Apache-2.0
// Reads the cookie of a QUIC packet. Towards the server it is the interface id of a cookie address, or else the
// connection id; towards the client it is the interface id of the source address. One cipher unseals all of them, and
// the leading bits, which are not encrypted, tell the kinds apart (docs/cookie.md). On switches between a server and
// its edge switch, only the dynamic form is unsealed, for its RPT.
control Unseal(in headers_t hdr, inout metadata_t meta) {
    Cookie6Cipher() open;

    apply {
        bit<1> sealed = 1;
        bit<64> word = meta.interface_id;
        meta.quic_cookie.kind = QuicCookie.NONE;
        if (meta.direction == Direction.TRANSIT) {
            word = hdr.ipv6.src[63:0];
            if (!hdr.ipv6.isValid() || meta.role != ROLE_SERVER || word[63:61] != 0b011) {
                sealed = 0;
            }
        } else if (meta.direction == Direction.UP && meta.at_cookie_address == 0) {
            word = hdr.connection_id.word;
            if (!hdr.connection_id.isValid() || hdr.connection_id.length != (bit<5>)(CID_LENGTH - 1)) {
                sealed = 0; // not one of ours
            } else if (hdr.connection_id.config == CID_PLAIN) {
                sealed = 0;
                meta.quic_cookie.kind = QuicCookie.PLAIN_CID;
                meta.quic_cookie.sid = word[63:48];
            } else if (hdr.connection_id.config != 2w0 ++ word[60:60] || word[63:61] != 0b100) {
                sealed = 0;
            }
        } else if (word[63:62] != 0b01 || word == meta.dip_id) {
            sealed = 0;
        }

        if (sealed == 1) {
            bit<32> left = word[59:28];
            bit<32> right = 4w0 ++ word[27:0];
            bit<1> keyed;
            meta.quic_cookie.epoch = word[60:60];
            open.apply(left, right, meta.quic_cookie.epoch, keyed);
            bit<60> plain = left ++ right[27:0];
            meta.quic_cookie.sid = plain[59:44];
            meta.quic_cookie.rpt = plain[43:36];
            meta.quic_cookie.n_af = plain[35:28];
            meta.quic_cookie.n_ff = plain[27:20];
            meta.quic_cookie.x = plain[19:19];
            if (keyed == 1 && plain[18:0] == 0) {
                if (word[63:61] == 0b011) {
                    meta.quic_cookie.kind = QuicCookie.DYNAMIC;
                } else if (plain[19:19] == 0) {
                    if (word[63:61] == 0b010 && plain[43:20] == 0) {
                        meta.quic_cookie.kind = QuicCookie.STATIC;
                    } else if (word[63:61] == 0b100 && plain[43:20] != 0) {
                        meta.quic_cookie.kind = QuicCookie.SEALED_CID;
                    }
                }
            }
        }
    }
}
