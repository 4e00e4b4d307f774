// SPDX-License-Identifier: Apache-2.0
// Incremental checksums (RFC 1624, equation 3): the fields that may change are subtracted on arrival and added at
// departure. The payload is not read, and a checksum that was wrong stays wrong.
#ifndef FRONTAGE_V1MODEL_CHECKSUM_P4
#define FRONTAGE_V1MODEL_CHECKSUM_P4

bit<32> words32(in bit<32> x) {
    return (bit<32>)x[31:16] + (bit<32>)x[15:0];
}

bit<32> words128(in bit<128> x) {
    return words32(x[127:96]) + words32(x[95:64]) + words32(x[63:32]) + words32(x[31:0]);
}

bit<16> fold(in bit<32> sum) {
    bit<32> once = words32(sum);
    bit<32> twice = words32(once);
    return ~twice[15:0];
}

// The quote of an ICMP error has checksums of its own, which the error's checksum covers.
control QuoteResidue(in headers_t hdr, inout metadata_t meta) {
    apply {
        bit<32> addresses;
        bit<32> covered = 0; // by the checksum of the error, besides addresses and ports
        if (hdr.ipv4.isValid()) {
            addresses = words32(~hdr.quoted_ipv4.src) + words32(~hdr.quoted_ipv4.dst);
            covered = (bit<32>)(~hdr.quoted_ipv4.checksum);
            meta.quoted_ipv4_residue = covered + addresses;
        } else {
            addresses = words128(~hdr.quoted_ipv6.src) + words128(~hdr.quoted_ipv6.dst);
            covered = words128(~hdr.ipv6.src) + words128(~hdr.ipv6.dst);
        }
        bit<32> sum = addresses + (bit<32>)(~hdr.quoted_ports.src_port) + (bit<32>)(~hdr.quoted_ports.dst_port);
        bit<32> transport = 0;
        if (hdr.quoted_tcp.isValid()) {
            transport = (bit<32>)(~hdr.quoted_tcp.checksum);
        } else if (hdr.quoted_udp.isValid()) {
            transport = (bit<32>)(~hdr.quoted_udp.checksum);
        }
        meta.quoted_transport_residue = sum + transport;
        meta.icmp_residue = sum + covered + transport + (bit<32>)(~hdr.icmp.checksum);
    }
}

control QuoteChecksums(inout headers_t hdr, in metadata_t meta) {
    apply {
        bit<32> addresses;
        bit<32> covered = 0;
        if (hdr.ipv4.isValid()) {
            addresses = words32(hdr.quoted_ipv4.src) + words32(hdr.quoted_ipv4.dst);
            hdr.quoted_ipv4.checksum = fold(meta.quoted_ipv4_residue + addresses);
            covered = (bit<32>)hdr.quoted_ipv4.checksum;
        } else {
            addresses = words128(hdr.quoted_ipv6.src) + words128(hdr.quoted_ipv6.dst);
            covered = words128(hdr.ipv6.src) + words128(hdr.ipv6.dst);
        }
        bit<32> sum = addresses + (bit<32>)hdr.quoted_ports.src_port + (bit<32>)hdr.quoted_ports.dst_port;
        if (hdr.quoted_tcp.isValid()) {
            hdr.quoted_tcp.checksum = fold(meta.quoted_transport_residue + sum);
            covered = covered + (bit<32>)hdr.quoted_tcp.checksum;
        } else if (hdr.quoted_udp.isValid()) {
            if (hdr.quoted_udp.checksum != 0) {
                hdr.quoted_udp.checksum = fold(meta.quoted_transport_residue + sum);
                if (hdr.quoted_udp.checksum == 0) {
                    hdr.quoted_udp.checksum = 0xffff;
                }
            }
            covered = covered + (bit<32>)hdr.quoted_udp.checksum;
        }
        hdr.icmp.checksum = fold(meta.icmp_residue + sum + covered);
    }
}

control ChecksumResidue(in headers_t hdr, inout metadata_t meta) {
    QuoteResidue() quote;

    apply {
        bit<32> addresses = 0;
        if (hdr.ipv4.isValid()) {
            addresses = words32(~hdr.ipv4.src) + words32(~hdr.ipv4.dst);
            meta.ipv4_residue = (bit<32>)(~hdr.ipv4.checksum) + (bit<32>)(~(hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.tos))
                + (bit<32>)(~(hdr.ipv4.ttl ++ hdr.ipv4.protocol)) + addresses;
        } else if (hdr.ipv6.isValid()) {
            addresses = words128(~hdr.ipv6.src) + words128(~hdr.ipv6.dst);
        }
        if (hdr.ports.isValid()) {
            meta.transport_residue = addresses + (bit<32>)(~hdr.ports.src_port) + (bit<32>)(~hdr.ports.dst_port);
        }
        if (hdr.tcp.isValid()) {
            meta.transport_residue = meta.transport_residue + (bit<32>)(~hdr.tcp.checksum)
                + (bit<32>)(~(hdr.tcp.data_offset ++ hdr.tcp.ck ++ hdr.tcp.second_hop ++ hdr.tcp.reserved ++ hdr.tcp.flags));
        } else if (hdr.udp.isValid()) {
            meta.transport_residue = meta.transport_residue + (bit<32>)(~hdr.udp.checksum);
        }
        if (hdr.tcp_timestamp.isValid()) {
            meta.transport_residue = meta.transport_residue + words32(~hdr.tcp_timestamp.tsval)
                + words32(~hdr.tcp_timestamp.tsecr);
        }
        if (hdr.quoted_ports.isValid()) {
            quote.apply(hdr, meta);
        }
    }
}

// Accounts for a word of the transport's header that ingress changed and that ChecksumUpdate does not read.
control TransportWord(inout metadata_t meta, in bit<16> old, in bit<16> new) {
    apply {
        meta.transport_residue = meta.transport_residue + (bit<32>)(~old) + (bit<32>)new;
    }
}

control ChecksumUpdate(inout headers_t hdr, in metadata_t meta) {
    QuoteChecksums() quote;

    apply {
        bit<32> addresses = 0;
        if (hdr.ipv4.isValid()) {
            addresses = words32(hdr.ipv4.src) + words32(hdr.ipv4.dst);
            hdr.ipv4.checksum = fold(meta.ipv4_residue + (bit<32>)(hdr.ipv4.version ++ hdr.ipv4.ihl ++ hdr.ipv4.tos)
                + (bit<32>)(hdr.ipv4.ttl ++ hdr.ipv4.protocol) + addresses);
        } else if (hdr.ipv6.isValid()) {
            addresses = words128(hdr.ipv6.src) + words128(hdr.ipv6.dst);
        }
        if (IS_ERROR && meta.direction != Direction.TRANSIT) {
            quote.apply(hdr, meta);
        } else if (meta.direction != Direction.TRANSIT && hdr.ports.isValid()) {
            bit<32> sum = meta.transport_residue + addresses + (bit<32>)hdr.ports.src_port
                + (bit<32>)hdr.ports.dst_port;
            if (hdr.tcp.isValid()) {
                sum = sum + (bit<32>)(hdr.tcp.data_offset ++ hdr.tcp.ck ++ hdr.tcp.second_hop ++ hdr.tcp.reserved
                                      ++ hdr.tcp.flags);
                if (hdr.tcp_timestamp.isValid()) {
                    sum = sum + words32(hdr.tcp_timestamp.tsval) + words32(hdr.tcp_timestamp.tsecr);
                }
                hdr.tcp.checksum = fold(sum);
            } else if (hdr.udp.isValid() && hdr.udp.checksum != 0) { // zero: the sender computed none (RFC 768)
                hdr.udp.checksum = fold(sum);
                if (hdr.udp.checksum == 0) {
                    hdr.udp.checksum = 0xffff;
                }
            }
        }
    }
}

// The answer to a SYN has no field of the SYN's that its checksums could be updated from. This sets the sums of all
// fields that ChecksumUpdate does not add, and cuts off the rest of the SYN.
control SynAnswerChecksum(in headers_t hdr, inout metadata_t meta, in bit<16> length) {
    apply {
        bit<32> sum = (bit<32>)PROTO_TCP + (bit<32>)length + words32(hdr.tcp.seq) + words32(hdr.tcp.ack)
            + (bit<32>)hdr.tcp.window + words32(hdr.tcp_options[0].data);
        if (hdr.tcp_timestamp.isValid()) {
            sum = sum + (bit<32>)hdr.tcp_timestamp.before + (bit<32>)(hdr.tcp_timestamp.kind ++ hdr.tcp_timestamp.length);
            if (hdr.syn_options[0].isValid()) {
                sum = sum + words32(hdr.syn_options[0].data);
            }
        }
        meta.transport_residue = sum;
        if (hdr.ipv4.isValid()) {
            meta.ipv4_residue = (bit<32>)hdr.ipv4.total_length + 0x4000; // do not fragment
            truncate((bit<32>)length + 34);
        } else {
            truncate((bit<32>)length + 54);
        }
    }
}

#endif
