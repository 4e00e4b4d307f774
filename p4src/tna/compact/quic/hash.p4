// SPDX-License-Identifier: Apache-2.0
// Hashes of a client's packet (tna/hash.p4), before its VIP is known.
#ifndef FRONTAGE_TNA_COMPACT_QUIC_HASH_P4
#define FRONTAGE_TNA_COMPACT_QUIC_HASH_P4

control ClientHash(in headers_t hdr, inout metadata_t meta) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash4;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash6;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) index4;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) index6;

    action hash_ipv4() {
        meta.connection_hash = hash4.get({ hdr.ipv4.src, hdr.ipv4.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    action hash_ipv6() {
        meta.connection_hash = hash6.get({ hdr.ipv6.src, hdr.ipv6.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    action index_ipv4() {
        meta.connection.index = index4.get({ hdr.ipv4.src, hdr.ipv4.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    action index_ipv6() {
        meta.connection.index = index6.get({ hdr.ipv6.src, hdr.ipv6.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    apply {
        if (hdr.udp.isValid() && hdr.ipv4.isValid()) {
            hash_ipv4();
            index_ipv4();
        } else if (hdr.udp.isValid()) {
            hash_ipv6();
            index_ipv6();
        }
    }
}

#endif
