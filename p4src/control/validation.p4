// SPDX-License-Identifier: Apache-2.0
// Drops malformed Ethernet, IPv4 and IPv6 packets, each for a named reason (include/drop.p4).
control Validation(in headers_t hdr, inout metadata_t meta, in bit<32> frame_length, in bit<1> bad_checksum) {
    apply {
        if (meta.parse_failure == DROP_TUNNEL_HEADER || meta.parse_failure == DROP_IPV4_HEADER) {
            meta.HEADER_VERDICT = meta.parse_failure;
        } else if (!hdr.ipv4.isValid() && !hdr.ipv6.isValid() && !hdr.arp.isValid()) {
            meta.HEADER_VERDICT = DROP_ETHERTYPE;
            if (meta.parse_failure == DROP_TRUNCATED) {
                meta.HEADER_VERDICT = DROP_TRUNCATED;
            }
        } else if (hdr.ethernet.dst != meta.port_mac && hdr.ethernet.dst[40:40] == 0) {
            meta.HEADER_VERDICT = DROP_NOT_LOCAL_MAC;
        } else if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.version != 4
                || (bit<32>)hdr.ipv4.total_length + 14 > frame_length
                || hdr.ipv4.total_length < (bit<16>)hdr.ipv4.ihl << 2) {
                meta.HEADER_VERDICT = DROP_IPV4_HEADER;
            } else if (bad_checksum == 1) {
                meta.HEADER_VERDICT = DROP_IPV4_CHECKSUM;
            } else if (hdr.ipv4.src[31:24] == 0 || hdr.ipv4.src[31:24] == 127 || hdr.ipv4.src[31:29] == 7) {
                meta.HEADER_VERDICT = DROP_MARTIAN_SOURCE;
            }
        } else if (hdr.ipv6.isValid()) {
            if (hdr.ipv6.version != 6 || (bit<32>)hdr.ipv6.payload_length + 54 > frame_length) {
                meta.HEADER_VERDICT = DROP_IPV6_HEADER;
            } else if (hdr.ipv6.src[127:120] == 0xff || hdr.ipv6.src == 1
                || (hdr.ipv6.src == 0 && !hdr.ndp.isValid())) {
                meta.HEADER_VERDICT = DROP_MARTIAN_SOURCE;
            }
        }
    }
}
