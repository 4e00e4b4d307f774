// SPDX-License-Identifier: Apache-2.0
// Lowers the maximum segment size in the SYNs and SYN-ACKs of remote servers (RFC 9293, 3.7.1), so that segments fit into
// the tunnel. The option counts only where every TCP in use has it: first. Its absence means 536 bytes over IPv4 and 1,220
// over IPv6, which fit.
control Mss(inout headers_t hdr, inout metadata_t meta) {
    MssCounter() segments;
    TransportWord() word;

    apply {
        if (meta.max_mss != 0 && hdr.tcp.isValid() && (hdr.tcp.flags & TCP_SYN) != 0) {
            if (!hdr.tcp_options[0].isValid() || hdr.tcp_options[0].data[31:16] != TCP_MSS_OPTION) {
                segments.apply(MSS_UNKNOWN);
            } else if (hdr.tcp_options[0].data[15:0] <= meta.max_mss) {
                segments.apply(MSS_KEPT);
            } else {
                bit<16> old = hdr.tcp_options[0].data[15:0];
                word.apply(meta, old, meta.max_mss);
                hdr.tcp_options[0].data[15:0] = meta.max_mss;
                segments.apply(MSS_CLAMPED);
            }
        }
    }
}
