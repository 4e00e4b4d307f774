// SPDX-License-Identifier: Apache-2.0
// Checksums. The parser subtracts the fields that may be rewritten, and the deparser adds them (RFC 1624, equation 3). The
// payload is not read, and a checksum that was wrong stays wrong.
#ifndef FRONTAGE_TNA_CHECKSUM_P4
#define FRONTAGE_TNA_CHECKSUM_P4

// Chooses the checksums that the deparser updates.
control ChecksumFlags(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (meta.direction != Direction.TRANSIT) {
            if (hdr.tcp.isValid()) {
                meta.update_tcp = 1;
            } else if (hdr.udp.isValid() && hdr.udp.checksum != 0) { // zero: the sender computed none (RFC 768)
                meta.update_udp = 1;
            }
        }
    }
}

control Ipv4Checksum(inout headers_t hdr, in metadata_t meta) {
    Checksum() checksum;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = checksum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos,
#ifdef WITHOUT_TCP
                hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment,
                hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
#endif
                hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst,
                meta.ipv4_residue });
        }
    }
}

control TransportChecksum(inout headers_t hdr, in metadata_t meta) {
#ifndef WITHOUT_TCP
    Checksum() tcp_checksum;
#endif
#ifndef WITHOUT_QUIC
    Checksum() udp_checksum;
#endif

    apply {
#ifndef WITHOUT_TCP
        if (meta.update_tcp == 1) {
            hdr.tcp.checksum = tcp_checksum.update({
                hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv6.src, hdr.ipv6.dst, hdr.ports.src_port, hdr.ports.dst_port,
                hdr.tcp.data_offset, hdr.tcp.ck, hdr.tcp.second_hop, hdr.tcp.reserved, hdr.tcp.flags,
                hdr.tcp_timestamp.tsval,
                meta.transport_residue });
        }
#endif
#ifndef WITHOUT_QUIC
        if (meta.update_udp == 1) {
            hdr.udp.checksum = udp_checksum.update({
                hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv6.src, hdr.ipv6.dst, hdr.ports.src_port, hdr.ports.dst_port,
                meta.transport_residue }, true);
        }
#endif
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

#ifndef WITHOUT_STEERING
// The outer header of a tunnel
control OuterChecksum(inout headers_t hdr) {
    Checksum() checksum;

    apply {
        if (hdr.outer_ipv4.isValid()) {
            hdr.outer_ipv4.checksum = checksum.update({
                hdr.outer_ipv4.version, hdr.outer_ipv4.ihl, hdr.outer_ipv4.tos, hdr.outer_ipv4.total_length,
                hdr.outer_ipv4.identification, hdr.outer_ipv4.reserved, hdr.outer_ipv4.dont_fragment,
                hdr.outer_ipv4.more_fragments, hdr.outer_ipv4.fragment_offset, hdr.outer_ipv4.ttl,
                hdr.outer_ipv4.protocol, hdr.outer_ipv4.src, hdr.outer_ipv4.dst });
        }
    }
}
#endif

#endif
