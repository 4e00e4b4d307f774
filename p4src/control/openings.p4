// SPDX-License-Identifier: Apache-2.0
// Counts the handshakes that clients begin with each server, and the server's answers: SYNs and SYN-ACKs, and QUIC long
// headers. A server that answers no handshakes fails its passive check (docs/health.md), although its established
// connections continue. Health checks do not count. Other packets of a server count if they report its loads.

enum bit<2> Opening {
    BEGUN = 0,
    ANSWERED = 1,
    REPORT = 2, // outside a handshake
    OTHER = 3   // not counted
}

control Openings(in headers_t hdr, in metadata_t meta) {
    OpeningCounter() packets;

    apply {
        bit<2> kind = Opening.OTHER;
        if (!IS_CHECK && !IS_ERROR) {
            if (meta.direction == Direction.UP) {
                if (hdr.quic_long.isValid() || (hdr.tcp.isValid() && (hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)) {
                    kind = Opening.BEGUN;
                }
            } else if (meta.direction == Direction.DOWN) {
                if (hdr.quic_long.isValid()
                    || (hdr.tcp.isValid() && (hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK))) {
                    kind = Opening.ANSWERED;
                }
            }
        }
        if (kind == Opening.OTHER && meta.direction == Direction.DOWN && meta.outcome == OUTCOME_INSIGHT) {
            kind = Opening.REPORT;
        }
        if (kind != Opening.OTHER) {
            packets.apply(meta.sid, kind);
        }
    }
}
