// SPDX-License-Identifier: Apache-2.0
// Retrieving phase (CloudCookie, IV.B): reads the SID from what the client echoes: the cookie in TSecr, the cookie
// address, or the connection id that the server chose (docs/cookie.md).
control Retrieve(in headers_t hdr, inout metadata_t meta) {
    CookieCipher() open;

    apply {
        if (hdr.tcp_timestamp.isValid()) {
            bit<16> code = hdr.tcp_timestamp.tsecr[15:0];
            bit<1> keyed;
            bit<32> tweak = meta.connection_hash;
            bit<8> left = code[14:7];
            bit<8> right = 1w0 ++ code[6:0];
            open.apply(right, left, code[15:15], tweak[7:0] ++ tweak[15:8] ++ tweak[23:16] ++ tweak[31:24], keyed);
            meta.candidate_sid = 4w0 ++ left ++ right[6:3];
            if (keyed == 1 && right[2:0] == 0) {
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
