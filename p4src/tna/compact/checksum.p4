// SPDX-License-Identifier: Apache-2.0
// Checksums, as in tna/checksum.p4. Only those of TCP are updated.
#ifndef FRONTAGE_TNA_COMPACT_CHECKSUM_P4
#define FRONTAGE_TNA_COMPACT_CHECKSUM_P4

control Ipv4Checksum(inout headers_t hdr, in metadata_t meta) {
    Checksum() checksum;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = checksum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst,
                meta.ipv4_residue });
        }
    }
}

control TransportChecksum(inout headers_t hdr, in metadata_t meta) {
    Checksum() tcp_checksum;

    apply {
        if (meta.update_tcp == 1) {
            hdr.tcp.checksum = tcp_checksum.update({
                hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv6.src, hdr.ipv6.dst, hdr.ports.src_port, hdr.ports.dst_port,
                hdr.tcp.data_offset, hdr.tcp.ck, hdr.tcp.reserved, hdr.tcp.flags, hdr.tcp_timestamp.tsval,
                meta.transport_residue });
        }
    }
}

// All of a neighbor advertisement, which the switch makes, is in parsed headers (RFC 4443, 2.3).
control AdvertisementChecksum(inout headers_t hdr, in metadata_t meta) {
    Checksum() checksum;

    apply {
        if (meta.is_advertisement == 1) {
            hdr.icmp.checksum = checksum.update({
                hdr.ipv6.src, hdr.ipv6.dst, 16w0, hdr.ipv6.payload_length, 24w0, hdr.ipv6.next_header,
                hdr.icmp.icmp_type, hdr.icmp.icmp_code,
                hdr.ndp.router, hdr.ndp.solicited, hdr.ndp.override, hdr.ndp.reserved, hdr.ndp.target,
                hdr.ndp_option.option_type, hdr.ndp_option.length, hdr.ndp_option.mac });
        }
    }
}

#endif
