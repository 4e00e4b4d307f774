// SPDX-License-Identifier: Apache-2.0
// Drops malformed Ethernet, IPv4 and IPv6 packets, each for a named reason (include/drop.p4). `excess` is not zero if the IP
// header promises more bytes than the frame has.
//
// Some targets compare fields only with constants, and few bits at a time. So differences are computed first.
control Validation(in headers_t hdr, inout metadata_t meta, in bit<16> excess, in bit<1> bad_checksum) {
    mac_t other_mac;         // the destination XOR the port's address
    bit<1> is_other_mac;
    bit<1> has_local_source; // ::1
    bit<16> missing;         // bytes of the header beyond the total length

    action compare_macs() {
        other_mac = hdr.ethernet.dst ^ meta.port_mac;
    }

    action set_header_length() {
        IN_HASH { meta.ipv4_header_length = 10w0 ++ hdr.ipv4.ihl ++ 2w0; }
    }

    action compare_lengths() {
        missing = meta.ipv4_header_length |-| hdr.ipv4.total_length;
    }

    apply {
        compare_macs();
        is_other_mac = 0;
        missing = 0;
        if (hdr.ethernet.dst[40:40] == 0) { // unicast
            if (other_mac[31:0] != 0) {
                is_other_mac = 1;
            } else if (other_mac[47:32] != 0) {
                is_other_mac = 1;
            }
        }
        meta.has_no_source = 0;
        has_local_source = 0;
        if (hdr.ipv4.isValid()) {
            set_header_length();
            compare_lengths();
        } else if (hdr.ipv6.isValid() && hdr.ipv6.src[127:96] == 0) {
            if (hdr.ipv6.src[95:64] == 0) {
                if (hdr.ipv6.src[63:32] == 0) {
                    if (hdr.ipv6.src[31:0] == 0) {
                        meta.has_no_source = 1;
                    } else if (hdr.ipv6.src[31:0] == 1) {
                        has_local_source = 1;
                    }
                }
            }
        }

        if (meta.parse_failure == DROP_TUNNEL_HEADER || meta.parse_failure == DROP_IPV4_HEADER) {
            meta.HEADER_VERDICT = meta.parse_failure;
        } else if (!hdr.ipv4.isValid() && !hdr.ipv6.isValid() && !hdr.arp.isValid()) {
            meta.HEADER_VERDICT = DROP_ETHERTYPE;
            if (meta.parse_failure == DROP_TRUNCATED) {
                meta.HEADER_VERDICT = DROP_TRUNCATED;
            }
        } else if (is_other_mac == 1) {
            meta.HEADER_VERDICT = DROP_NOT_LOCAL_MAC;
        } else if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.version != 4 || missing != 0) {
                meta.HEADER_VERDICT = DROP_IPV4_HEADER;
            } else if (excess != 0) {
                meta.HEADER_VERDICT = DROP_IPV4_HEADER;
            } else if (bad_checksum == 1) {
                meta.HEADER_VERDICT = DROP_IPV4_CHECKSUM;
            } else if (hdr.ipv4.src[31:24] == 0 || hdr.ipv4.src[31:24] == 127 || hdr.ipv4.src[31:29] == 7) {
                meta.HEADER_VERDICT = DROP_MARTIAN_SOURCE;
            }
        } else if (hdr.ipv6.isValid()) {
            if (hdr.ipv6.version != 6 || excess != 0) {
                meta.HEADER_VERDICT = DROP_IPV6_HEADER;
            } else if (hdr.ipv6.src[127:120] == 0xff || has_local_source == 1
                || (meta.has_no_source == 1 && !hdr.ndp.isValid())) {
                meta.HEADER_VERDICT = DROP_MARTIAN_SOURCE;
            }
        }
    }
}
