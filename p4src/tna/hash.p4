// SPDX-License-Identifier: Apache-2.0
// Hashes of a connection: over client, VIP and their ports, so that both directions have the same.
#ifndef FRONTAGE_TNA_HASH_P4
#define FRONTAGE_TNA_HASH_P4

control ConnectionHash(in headers_t hdr, inout metadata_t meta) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) up4;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) up6;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) down4;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) down6;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) up_index4;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) up_index6;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) down_index4;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) down_index6;

    // An action computes one hash: each has 32 bits for results of the hash unit.
    action hash_up4() {
        meta.connection_hash = up4.get({ hdr.ipv4.src, hdr.ipv4.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    action index_up4() {
        meta.connection.index = up_index4.get({ hdr.ipv4.src, hdr.ipv4.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    action hash_up6() {
        meta.connection_hash = up6.get({ hdr.ipv6.src, hdr.ipv6.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    action index_up6() {
        meta.connection.index = up_index6.get({ hdr.ipv6.src, hdr.ipv6.dst, hdr.ports.src_port, hdr.ports.dst_port });
    }

    action hash_down4() {
        meta.connection_hash = down4.get({ hdr.ipv4.dst, hdr.ipv4.src, hdr.ports.dst_port, hdr.ports.src_port });
    }

    action index_down4() {
        meta.connection.index = down_index4.get({ hdr.ipv4.dst, hdr.ipv4.src, hdr.ports.dst_port, hdr.ports.src_port });
    }

    action hash_down6() {
        meta.connection_hash = down6.get({ hdr.ipv6.dst, hdr.ipv6.src, hdr.ports.dst_port, hdr.ports.src_port });
    }

    action index_down6() {
        meta.connection.index = down_index6.get({ hdr.ipv6.dst, hdr.ipv6.src, hdr.ports.dst_port, hdr.ports.src_port });
    }

    apply {
        if (meta.direction == Direction.UP) {
            if (hdr.ipv4.isValid()) {
                hash_up4();
                index_up4();
            } else {
                hash_up6();
                index_up6();
            }
        } else if (meta.direction == Direction.DOWN || meta.direction == Direction.RESPONSE) {
            if (hdr.ipv4.isValid()) {
                hash_down4();
                index_down4();
            } else {
                hash_down6();
                index_down6();
            }
        }
    }
}

// The hash by which a flow keeps to one of several paths: that of its connection, or else over its addresses and ports.
control FlowHash(in headers_t hdr, in metadata_t meta, inout bit<32> flow_hash) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash4;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash6;
    bit<16> src_port;
    bit<16> dst_port;

    action read_ports() {
        src_port = hdr.ports.src_port;
        dst_port = hdr.ports.dst_port;
    }

    action compute4() {
        flow_hash = hash4.get({ hdr.ipv4.src, hdr.ipv4.dst, src_port, dst_port });
    }

    action compute6() {
        flow_hash = hash6.get({ hdr.ipv6.src, hdr.ipv6.dst, src_port, dst_port });
    }

    apply {
        src_port = 0;
        dst_port = 0;
        if (hdr.ports.isValid()) {
            read_ports();
        }
        if (meta.direction != Direction.TRANSIT || meta.from_tunnel == 1) {
            flow_hash = meta.connection_hash;
        } else if (hdr.ipv4.isValid()) {
            compute4();
        } else {
            compute6();
        }
    }
}

// The hash unit computes in one stage what ALUs, which have two operands, compute in three.
control XorWords(inout bit<32> word, in bit<32> a, in bit<32> b, in bit<32> c, in bit<32> d) {
    Hash<bit<32>>(HashAlgorithm_t.XOR32) xor;

    apply {
        word = xor.get({ word, a, b, c, d });
    }
}

#endif
