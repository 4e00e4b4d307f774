// Explicit congestion notification as DCTCP wants it (RFC 8257, 3.1): a packet of a transport that understands (RFC 3168, 5) is marked if it met a queue of
// the port's threshold or more, in packets; there is no averaging.
control Ecn(inout headers_t hdr, inout metadata_t meta, in depth_t met) {
    apply {
        if (met >= meta.ecn_threshold) {
            if (hdr.ipv4.isValid()) {
                if (hdr.ipv4.tos[1:0] == ECN_ECT0) {
                    hdr.ipv4.tos[1:0] = ECN_CE;
                    meta.ipv4_residue = meta.ipv4_residue + 1; // the sum of the header's words (RFC 1624)
                } else if (hdr.ipv4.tos[1:0] == ECN_ECT1) {
                    hdr.ipv4.tos[1:0] = ECN_CE;
                    meta.ipv4_residue = meta.ipv4_residue + 2;
                }
            } else if (hdr.ipv6.isValid() && hdr.ipv6.traffic_class[1:0] != ECN_NOT_ECT) {
                hdr.ipv6.traffic_class[1:0] = ECN_CE;
            }
        }
    }
}
