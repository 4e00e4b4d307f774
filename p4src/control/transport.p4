// SPDX-License-Identifier: Apache-2.0
// Drops malformed TCP, UDP and QUIC packets to or from a VIP, each for a named reason. A packet to a VIP's address
// but not to a service is already dropped, and may get a more precise reason here.
control Transport(in headers_t hdr, inout metadata_t meta) {
    bit<16> header_length;
    bit<16> length;

    // Some targets compute one operation per action.
    action set_header_length() {
        header_length = 10w0 ++ hdr.ipv4.ihl ++ 2w0;
    }

    action set_length(bit<16> total, bit<16> headers) {
        length = total - headers;
    }

    apply {
        // Length of the segment or datagram. The rest of the frame is padding.
        if (hdr.ipv4.isValid()) {
            set_header_length();
            set_length(hdr.ipv4.total_length, header_length);
        } else {
            set_length(hdr.ipv6.payload_length, meta.extension_bytes);
        }

        if (meta.VIP_VERDICT != VERDICT_CONTINUE) {
            if (meta.is_fragment == 1) {
                meta.VIP_VERDICT = DROP_VIP_FRAGMENT;
            } else if (meta.parse_failure != DROP_NONE && !hdr.udp.isValid()) { // other datagrams need not be QUIC
                meta.VIP_VERDICT = meta.parse_failure;
            }
        } else if (hdr.udp.isValid()) {
            if (hdr.udp.length < 8 || hdr.udp.length > length) {
                meta.VIP_VERDICT = DROP_UDP_HEADER;
            } else if (hdr.ipv6.isValid() && hdr.udp.checksum == 0) {
                meta.VIP_VERDICT = DROP_UDP_CHECKSUM;
            } else if (hdr.quic_long.isValid()) {
                // Up to and including the length of the source connection id.
                if (hdr.udp.length < 15 + (bit<16>)hdr.quic_long.dcid_length) {
                    meta.VIP_VERDICT = DROP_QUIC_HEADER;
                }
            } else if (hdr.udp.length < 18) {
                meta.VIP_VERDICT = DROP_QUIC_HEADER;
            }
        } else if (meta.parse_failure != DROP_NONE) {
            meta.VIP_VERDICT = meta.parse_failure;
        } else if (meta.direction == Direction.UP) {
            if (length < (bit<16>)hdr.tcp.data_offset << 2) {
                meta.VIP_VERDICT = DROP_TCP_HEADER;
            } else if ((hdr.tcp.flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) == 0
                       || ((hdr.tcp.flags & TCP_SYN) != 0 && (hdr.tcp.flags & (TCP_FIN | TCP_RST)) != 0)) {
                meta.VIP_VERDICT = DROP_TCP_FLAGS;
            }
        }
        // control/real_servers.p4 checks the packets of real servers.
        if (meta.VIP_VERDICT == VERDICT_CONTINUE && meta.direction == Direction.DOWN && meta.role != ROLE_SERVER
            && meta.role != ROLE_REAL_SERVER) {
            meta.VIP_VERDICT = DROP_SPOOFED_SOURCE;
        }
    }
}
