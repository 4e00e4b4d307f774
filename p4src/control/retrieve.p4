// SPDX-License-Identifier: Apache-2.0
// Retrieving phase (CloudCookie, IV.B): reads the SID from what the client echoes: the cookie in TSecr, the cookie
// address, or the connection id that the server chose (docs/cookie.md).
control Retrieve(in headers_t hdr, inout metadata_t meta) {
    CookieCipher() open;
    bit<1> epoch;

    // The code of a cookie is in TSecr: epoch (1) | left half (8) | right half (7).
    action split_code() {
        IN_HASH {
            meta.opened.a = 1w0 ++ hdr.tcp_timestamp.tsecr[6:0];
            meta.opened.b = hdr.tcp_timestamp.tsecr[14:7];
            epoch = hdr.tcp_timestamp.tsecr[15:15];
        }
    }

    action compute_indices() {
        IN_HASH {
            meta.opened.index0 = hdr.tcp_timestamp.tsecr[14:7] ^ meta.connection_hash[7:0];
            meta.opened.index1 = (1w0 ++ hdr.tcp_timestamp.tsecr[6:0]) ^ meta.connection_hash[15:8];
            meta.opened.index2 = hdr.tcp_timestamp.tsecr[14:7] ^ meta.connection_hash[23:16];
            meta.opened.index3 = (1w0 ++ hdr.tcp_timestamp.tsecr[6:0]) ^ meta.connection_hash[31:24];
        }
    }

    action set_candidate() {
        IN_HASH { meta.candidate_sid = 4w0 ++ meta.opened.b ++ meta.opened.a[6:3]; }
    }

    apply {
        if (hdr.tcp_timestamp.isValid()) {
            bit<1> keyed = 0;
            split_code();
            compute_indices();
            open.apply(meta.opened, epoch, keyed);
            set_candidate();
            if (keyed == 1 && meta.opened.a[2:0] == 0) {
                meta.candidate_found = 1;
            }
            meta.outcome = OUTCOME_RETRIEVED_COOKIE;
        } else if (hdr.udp.isValid()) {
            meta.candidate_sid = meta.quic_cookie.sid;
            if (meta.at_cookie_address == 0) {
                if (meta.quic_cookie.kind != QuicCookie.NONE) {
                    meta.candidate_found = 1;
                    meta.outcome = OUTCOME_RETRIEVED_CID;
                }
            } else if (meta.quic_cookie.kind == QuicCookie.STATIC) {
                meta.candidate_found = 1;
                meta.outcome = OUTCOME_RETRIEVED_ADDRESS;
            } else {
                meta.COOKIE_VERDICT = DROP_COOKIE_FORGED;
            }
        }
    }
}
