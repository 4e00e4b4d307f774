// SPDX-License-Identifier: Apache-2.0
// Rank of a packet: the remaining processing time of its flow, from the dynamic cookie (docs/cookie.md), as a code of
// the IPv6 carrier. Codes sort like the values that they stand for. Every switch on the way can read the rank, but
// only on ports of servers and real servers, because packets from outside could claim any rank. All other packets
// have the port's default rank.
control Rank(in headers_t hdr, inout metadata_t meta) {
    WideCode() wide_code;

    apply {
        if (meta.role == ROLE_SERVER || meta.role == ROLE_REAL_SERVER) {
            if (hdr.tcp.isValid()) {
                if (hdr.tcp.ck == 1 && hdr.tcp_timestamp.isValid()) {
                    meta.rank = 2w0 ++ hdr.tcp_timestamp.tsval[15:10];
                    wide_code.apply(meta.rank);
                }
            } else if (meta.quic_cookie.kind == QuicCookie.DYNAMIC) {
                meta.rank = meta.quic_cookie.rpt;
            }
        }
    }
}
