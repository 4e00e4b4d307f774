// SPDX-License-Identifier: Apache-2.0
// Rank in a packet's dynamic cookie (docs/cookie.md): the remaining processing time of its flow, as a code of the IPv6
// carrier. Codes sort like the values that they stand for. Every switch on the way can read the rank, but only on ports
// of servers and real servers, because packets from outside could claim any rank. All other packets have the default
// rank of their egress port.
control Rank(in headers_t hdr, inout metadata_t meta) {
    WideCode() wide_code;

    action read_rank() {
        IN_HASH { meta.cookie_rank = 2w0 ++ hdr.tcp_timestamp.tsval[15:10]; }
    }

    apply {
        if (meta.role == ROLE_SERVER || meta.role == ROLE_REAL_SERVER) {
            if (hdr.tcp.isValid()) {
                if (hdr.tcp.ck == 1 && hdr.tcp_timestamp.isValid()) {
                    meta.has_cookie_rank = 1;
                    read_rank();
                    wide_code.apply(meta.cookie_rank);
                }
            } else if (meta.quic_cookie.kind == QuicCookie.DYNAMIC) {
                meta.has_cookie_rank = 1;
                meta.cookie_rank = meta.quic_cookie.rpt;
            }
        }
    }
}
