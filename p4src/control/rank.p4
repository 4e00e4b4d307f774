// A packet's rank: the remaining processing time of its flow, from the dynamic cookie (docs/cookie.md), as a code of the IPv6 carrier, whose order is that
// of the values. Any switch on the way reads it, but from servers and real servers only: what comes from outside could claim anything. Other packets keep
// the port's default.
control Rank(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (meta.role == ROLE_SERVER || meta.role == ROLE_REAL_SERVER) {
            if (hdr.tcp.isValid()) {
                if (hdr.tcp.ck == 1 && hdr.tcp_timestamp.isValid()) {
                    meta.rank = wide_code(2w0 ++ hdr.tcp_timestamp.tsval[15:10]);
                }
            } else if (meta.carried.what == Carried.DYNAMIC_COOKIE) {
                meta.rank = meta.carried.rpt;
            }
        }
    }
}
