// SPDX-License-Identifier: Apache-2.0
// Like p4src/control/rank.p4, but reads only the RPT_BITS most significant bits of the code, as if the cookie had a narrower field.
#ifndef RPT_BITS
#define RPT_BITS 8
#endif

control Rank(in headers_t hdr, inout metadata_t meta) {
    WideCode() wide_code;

    apply {
        if (meta.role == ROLE_SERVER || meta.role == ROLE_REAL_SERVER) {
            if (hdr.tcp.isValid()) {
                if (hdr.tcp.ck == 1 && hdr.tcp_timestamp.isValid()) {
                    meta.has_cookie_rank = 1;
                    meta.cookie_rank = 2w0 ++ hdr.tcp_timestamp.tsval[15:10];
                    wide_code.apply(meta.cookie_rank);
                }
            } else if (meta.quic_cookie.kind == QuicCookie.DYNAMIC) {
                meta.has_cookie_rank = 1;
                meta.cookie_rank = meta.quic_cookie.rpt;
            }
            meta.cookie_rank = meta.cookie_rank & (8w0xff << (8 - RPT_BITS));
        }
    }
}
