// SPDX-License-Identifier: Apache-2.0
// Packet samples for the controller (docs/samples.md). A sample is a clone that is sent to the controller as a packet-in
// (packet_in_t in arch.p4), with the first bytes of the packet. Without the clone session, nothing is cloned.
#ifndef FRONTAGE_V1MODEL_SAMPLES_P4
#define FRONTAGE_V1MODEL_SAMPLES_P4

// P4Runtime id of the clone session. Its only replica is the CPU port.
#define SAMPLE_SESSION 32767
// Bytes of the packet in a sample, and of the header before them.
#define SAMPLE_BYTES 128
#define SAMPLE_HEADER_BYTES 28

// Counts the packets of a port that can be sampled, and computes a pseudorandom number for each, so that periodic traffic
// is sampled evenly. It is the same in each run: the CRC of a multiple of the count. The CRC of the count
// itself is unsuitable, because its leading bits change little from one packet to the next.
control SampleDraw(in port_t port, out bit<32> pool, out bit<32> number) {
    register<bit<32>>(PORTS) pools;

    apply {
        pools.read(pool, (bit<32>)port);
        bit<32> multiple = pool * 0x9e3779b1; // the odd number nearest to 2^32 / golden ratio
        bit<16> seed = (bit<16>)port;
        hash(number, HashAlgorithm.crc32, 32w0, { multiple, seed }, 64w0x100000000);
        pool = pool + 1;
        pools.write((bit<32>)port, pool);
    }
}

// Egress: writes the header of a sample. The clone has the fields in SAMPLE_FIELDS.
control SampleHeader(inout headers_t hdr, in metadata_t meta, in bit<32> packet_length) {
    apply {
        hdr.packet_in.setValid();
        hdr.packet_in.kind = meta.sample_kind;
        hdr.packet_in.reason = meta.verdict;
        hdr.packet_in.outcome = meta.outcome;
        hdr.packet_in.direction = (bit<8>)meta.direction;
        hdr.packet_in.ingress_port = (bit<16>)meta.ingress_port;
        hdr.packet_in.egress_port = (bit<16>)meta.egress_port;
        hdr.packet_in.vip_id = meta.vip_id;
        hdr.packet_in.sid = meta.sid;
        hdr.packet_in.length = packet_length;
        hdr.packet_in.pool = meta.sample_pool;
        hdr.packet_in.hop_latency = meta.hop_latency;
        hdr.packet_in.queue_depth = (bit<32>)meta.queue_depth;
    }
}

#endif
