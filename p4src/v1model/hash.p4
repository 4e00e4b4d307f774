// SPDX-License-Identifier: Apache-2.0
// Hashes of a connection: over client, VIP and their ports, so that both directions have the same.
#ifndef FRONTAGE_V1MODEL_HASH_P4
#define FRONTAGE_V1MODEL_HASH_P4

control ConnectionHash4(in ipv4_t client, in ipv4_t vip, in bit<16> client_port, in bit<16> vip_port,
                        inout bit<32> connection_hash, inout bit<16> index) {
    apply {
        hash(connection_hash, HashAlgorithm.crc32, 32w0, { client, vip, client_port, vip_port }, 64w0x100000000);
        hash(index, HashAlgorithm.crc16, 16w0, { client, vip, client_port, vip_port }, 32w0x10000);
    }
}

control ConnectionHash6(in ipv6_t client, in ipv6_t vip, in bit<16> client_port, in bit<16> vip_port,
                        inout bit<32> connection_hash, inout bit<16> index) {
    apply {
        hash(connection_hash, HashAlgorithm.crc32, 32w0, { client, vip, client_port, vip_port }, 64w0x100000000);
        hash(index, HashAlgorithm.crc16, 16w0, { client, vip, client_port, vip_port }, 32w0x10000);
    }
}

control ConnectionHash(in headers_t hdr, inout metadata_t meta) {
    ConnectionHash4() hash4;
    ConnectionHash6() hash6;

    apply {
        if (meta.direction == Direction.UP) {
            if (hdr.ipv4.isValid()) {
                hash4.apply(hdr.ipv4.src, hdr.ipv4.dst, hdr.ports.src_port, hdr.ports.dst_port,
                            meta.connection_hash, meta.connection.index);
            } else {
                hash6.apply(hdr.ipv6.src, hdr.ipv6.dst, hdr.ports.src_port, hdr.ports.dst_port,
                            meta.connection_hash, meta.connection.index);
            }
        } else if (meta.direction == Direction.DOWN || meta.direction == Direction.RESPONSE) {
            if (hdr.ipv4.isValid()) {
                hash4.apply(hdr.ipv4.dst, hdr.ipv4.src, hdr.ports.dst_port, hdr.ports.src_port,
                            meta.connection_hash, meta.connection.index);
            } else {
                hash6.apply(hdr.ipv6.dst, hdr.ipv6.src, hdr.ports.dst_port, hdr.ports.src_port,
                            meta.connection_hash, meta.connection.index);
            }
        }
    }
}

// The hash by which a flow keeps to one of several paths: that of its connection, or else over its addresses and ports.
control FlowHash(in headers_t hdr, in metadata_t meta, inout bit<32> flow_hash) {
    apply {
        if (meta.direction != Direction.TRANSIT || meta.from_tunnel == 1) {
            flow_hash = meta.connection_hash;
        } else {
            bit<32> ports = 0;
            if (hdr.ports.isValid()) {
                ports = hdr.ports.src_port ++ hdr.ports.dst_port;
            }
            if (hdr.ipv4.isValid()) {
                hash(flow_hash, HashAlgorithm.crc32, 32w0, { hdr.ipv4.src, hdr.ipv4.dst, ports }, 64w0x100000000);
            } else {
                hash(flow_hash, HashAlgorithm.crc32, 32w0, { hdr.ipv6.src, hdr.ipv6.dst, ports }, 64w0x100000000);
            }
        }
    }
}

control XorWords(inout bit<32> word, in bit<32> a, in bit<32> b, in bit<32> c, in bit<32> d) {
    apply {
        word = word ^ a ^ b ^ c ^ d;
    }
}

#endif
