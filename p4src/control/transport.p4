// SPDX-License-Identifier: Apache-2.0
// Drops malformed TCP, UDP and QUIC packets and ICMP errors to or from a VIP, each for a named reason. A packet to a VIP's address
// but not to a service is already dropped, and may get a more precise reason here.

// Faults in the lengths of a TCP segment or a datagram, in bytes; zero: none.
struct length_faults_t {
    bit<16> excess;      // of the datagram, beyond the end of the packet
    bit<16> missing_udp; // that the header of UDP needs, but the datagram does not have
    bit<16> missing;     // the same for the header of TCP or QUIC
}

// Compares the lengths. Some targets compute one operation per action, and compare fields only with constants.
control TransportLengths(in headers_t hdr, inout metadata_t meta, out length_faults_t faults) {
    bit<16> length;        // of the segment or datagram; the rest of the frame is padding
    bit<16> header_length; // of TCP, or of UDP and QUIC
    bit<16> initial_space; // bytes that a datagram with an Initial has, but this one lacks

    action set_length(bit<16> total, bit<16> headers) {
        length = total - headers;
    }

    action compare_datagram() {
        faults.excess = hdr.udp.length |-| length;
        faults.missing_udp = 8 |-| hdr.udp.length;
    }

    action read_long_header() {
        IN_HASH { header_length = 8w0 ++ hdr.quic_long.dcid_length; }
    }

    action compare_with_initial() {
        initial_space = (8 + QUIC_INITIAL) |-| hdr.udp.length;
    }

    // 8 bytes of UDP, and the long header up to and including the length of the source connection id.
    action add_fixed_length() {
        header_length = header_length + 15;
    }

    action set_short_header_length() {
        header_length = 18;
    }

    action compare_quic() {
        faults.missing = header_length |-| hdr.udp.length;
    }

    action set_tcp_header_length() {
        IN_HASH { header_length = 10w0 ++ hdr.tcp.data_offset ++ 2w0; }
    }

    action compare_segment() {
        faults.missing = header_length |-| length;
    }

    apply {
        faults.excess = 0;
        faults.missing_udp = 0;
        faults.missing = 0;
        if (hdr.ipv4.isValid()) {
            set_length(hdr.ipv4.total_length, meta.ipv4_header_length);
        } else {
            set_length(hdr.ipv6.payload_length, meta.extension_bytes);
        }
        if (hdr.udp.isValid()) {
            compare_datagram();
            if (hdr.quic_long.isValid()) {
                compare_with_initial();
                read_long_header();
                add_fixed_length();
                if (initial_space == 0) {
                    meta.may_hold_initial = 1;
                }
            } else {
                set_short_header_length();
            }
            compare_quic();
        } else if (hdr.tcp.isValid()) {
            set_tcp_header_length();
            compare_segment();
        }
    }
}

control Transport(in headers_t hdr, inout metadata_t meta, in length_faults_t faults) {
    apply {
        if (meta.VIP_VERDICT != VERDICT_CONTINUE) {
            if (meta.is_fragment == 1) {
                meta.VIP_VERDICT = DROP_VIP_FRAGMENT;
            } else if (meta.parse_failure != DROP_NONE && !hdr.udp.isValid()) { // other datagrams need not be QUIC
                meta.VIP_VERDICT = meta.parse_failure;
            } else if (IS_BAD_QUOTE) {
                meta.VIP_VERDICT = DROP_ERROR_QUOTE;
            }
        } else if (IS_ERROR) {
            if (meta.parse_failure != DROP_NONE) {
                meta.VIP_VERDICT = meta.parse_failure;
            } else if (IS_BAD_QUOTE) {
                meta.VIP_VERDICT = DROP_ERROR_QUOTE;
            }
        } else if (hdr.udp.isValid()) {
            if (faults.missing_udp != 0 || faults.excess != 0) {
                meta.VIP_VERDICT = DROP_UDP_HEADER;
            } else if (hdr.ipv6.isValid() && hdr.udp.checksum == 0) {
                meta.VIP_VERDICT = DROP_UDP_CHECKSUM;
            } else if (faults.missing != 0) {
                meta.VIP_VERDICT = DROP_QUIC_HEADER;
            }
        } else if (meta.parse_failure != DROP_NONE) {
            meta.VIP_VERDICT = meta.parse_failure;
        } else if (meta.direction == Direction.UP) {
            if (faults.missing != 0) {
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
