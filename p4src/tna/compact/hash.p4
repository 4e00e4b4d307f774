// SPDX-License-Identifier: Apache-2.0
// Hashes of a connection (tna/hash.p4). A client's packet has its hash before its VIP is known, because most of the
// pipeline waits for it.
#ifndef FRONTAGE_TNA_COMPACT_HASH_P4
#define FRONTAGE_TNA_COMPACT_HASH_P4

control UpHash(in headers_t hdr, inout metadata_t meta) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) up4;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) up6;

    action hash_up4() {
        meta.connection_hash = up4.get({ hdr.ipv4.src, hdr.ipv4.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    action hash_up6() {
        meta.connection_hash = up6.get({ hdr.ipv6.src, hdr.ipv6.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    apply {
#ifdef WITHOUT_NEXT_HOP_GROUPS
        if (HAS_SERVICE_PORTS && hdr.ipv4.isValid()) {
            hash_up4();
        } else if (HAS_SERVICE_PORTS) {
            hash_up6();
        }
#else
        if (hdr.ports.isValid() && hdr.ipv4.isValid()) {
            hash_up4();
        } else if (hdr.ports.isValid()) {
            hash_up6();
        }
#endif
    }
}

#ifndef WITHOUT_NEXT_HOP_GROUPS
// The hash of packets without ports only selects a path, so it is computed after the address lookups of the first stages.
control AddressHash(in headers_t hdr, inout metadata_t meta) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) addresses4;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) addresses6;

    action hash_addresses4() {
        meta.connection_hash = addresses4.get({ hdr.ipv4.src, hdr.ipv4.dst, 16w0, 16w0 });
    }

    action hash_addresses6() {
        meta.connection_hash = addresses6.get({ hdr.ipv6.src, hdr.ipv6.dst, 16w0, 16w0 });
    }

    apply {
        if (!hdr.ports.isValid() && hdr.ipv4.isValid()) {
            hash_addresses4();
        } else if (!hdr.ports.isValid() && hdr.ipv6.isValid()) {
            hash_addresses6();
        }
    }
}
#endif

// The source of a server's packet already is the VIP.
control DownHash(in headers_t hdr, inout metadata_t meta) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) down4;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) down6;

    action hash_down4() {
        meta.connection_hash = down4.get({ hdr.ipv4.dst, hdr.ipv4.src, hdr.ports.dst_port, hdr.ports.src_port });
    }

    action hash_down6() {
        meta.connection_hash = down6.get({ hdr.ipv6.dst, hdr.ipv6.src, hdr.ports.dst_port, hdr.ports.src_port });
    }

    apply {
        if (meta.direction == Direction.DOWN && hdr.ipv4.isValid()) {
            hash_down4();
        } else if (meta.direction == Direction.DOWN) {
            hash_down6();
        }
    }
}

control ConnectionIndex(in headers_t hdr, inout metadata_t meta) {
    Hash<bit<CONNECTION_INDEX_BITS>>(HashAlgorithm_t.CRC16) up_index4;
    Hash<bit<CONNECTION_INDEX_BITS>>(HashAlgorithm_t.CRC16) up_index6;
    Hash<bit<CONNECTION_INDEX_BITS>>(HashAlgorithm_t.CRC16) down_index4;
    Hash<bit<CONNECTION_INDEX_BITS>>(HashAlgorithm_t.CRC16) down_index6;

    action index_up4() {
        meta.connection.index[CONNECTION_INDEX_BITS - 1:0] = up_index4.get({ hdr.ipv4.src, hdr.ipv4.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    action index_up6() {
        meta.connection.index[CONNECTION_INDEX_BITS - 1:0] = up_index6.get({ hdr.ipv6.src, hdr.ipv6.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    action index_down4() {
        meta.connection.index[CONNECTION_INDEX_BITS - 1:0] = down_index4.get({ hdr.ipv4.dst, hdr.ipv4.src, hdr.ports.dst_port, hdr.ports.src_port });
    }

    action index_down6() {
        meta.connection.index[CONNECTION_INDEX_BITS - 1:0] = down_index6.get({ hdr.ipv6.dst, hdr.ipv6.src, hdr.ports.dst_port, hdr.ports.src_port });
    }

    apply {
        if (meta.direction == Direction.UP && hdr.ipv4.isValid()) {
            index_up4();
        } else if (meta.direction == Direction.UP) {
            index_up6();
        } else if (meta.direction == Direction.DOWN && hdr.ipv4.isValid()) {
            index_down4();
        } else if (meta.direction == Direction.DOWN) {
            index_down6();
        }
    }
}

#endif
