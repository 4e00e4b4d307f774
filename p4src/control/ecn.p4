// SPDX-License-Identifier: Apache-2.0
// Explicit congestion notification for DCTCP (RFC 8257, 3.1): marks an ECN-capable packet (RFC 3168, 5) if the queue
// held at least the port's threshold of packets when it was enqueued. The queue depth is not averaged.
control Ecn(inout headers_t hdr, in metadata_t meta, in depth_t enqueue_depth) {
    apply {
        if (enqueue_depth >= meta.ecn_threshold) {
            if (hdr.ipv4.isValid()) {
                if (hdr.ipv4.tos[1:0] != ECN_NOT_ECT) {
                    hdr.ipv4.tos[1:0] = ECN_CE;
                }
            } else if (hdr.ipv6.isValid() && hdr.ipv6.traffic_class[1:0] != ECN_NOT_ECT) {
                hdr.ipv6.traffic_class[1:0] = ECN_CE;
            }
        }
    }
}
