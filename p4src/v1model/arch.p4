// SPDX-License-Identifier: Apache-2.0
// The headers and metadata that only v1model (BMv2 and softswitch) needs, and its direct counters. The files of this
// folder hold everything that depends on the architecture: the parser, counters, stateful memory, hashes and checksums.
// The folder of another architecture has controls and macros of the same names.
#ifndef FRONTAGE_V1MODEL_ARCH_P4
#define FRONTAGE_V1MODEL_ARCH_P4

// Before a block of an action: where it matters, the hash unit computes the assignments (tna/arch.p4).
#define IN_HASH

#define DIRECT_COUNTER(name) direct_counter(CounterType.packets_and_bytes) name;
#define COUNT(name)

// Chooses a next hop of a group by hash (control/groups.p4).
#define NEXT_HOP_SELECTOR(name) \
    @max_group_size(GROUP_SIZE) \
    action_selector(HashAlgorithm.crc16, GROUP_MEMBERS, 16) name;
#define DIRECT_METER(name, kind) direct_meter<bit<8>>(kind) name;
#define METER_PACKETS MeterType.packets
#define METER_BYTES MeterType.bytes
#define READ_METER(name, color) name.read(color);

// The controller sets the timeouts of connections and handshakes.
#define CONFIGURABLE_TIMEOUTS

typedef bit<16> tick_t; // ticks of 2^20 us, 1.05 s

// Where the early checks write the reason for which they drop a packet. Each runs only if those before it found none.
#define PORT_VERDICT verdict
#define HEADER_VERDICT verdict
#define NEIGHBOR_VERDICT verdict
#define TUNNEL_VERDICT verdict
#define VIP_VERDICT verdict
#define REAL_SERVER_VERDICT verdict
#define COOKIE_VERDICT verdict

// A sample: a packet-in for the controller (samples.p4).
@controller_header("packet_in")
header packet_in_t {
    bit<8> kind;          // SAMPLE_*
    bit<8> reason;        // DROP_*; 0: not dropped
    bit<8> outcome;       // OUTCOME_*
    bit<8> direction;     // Direction; 0: not a packet of a VIP
    bit<16> ingress_port;
    bit<16> egress_port;  // 0: dropped
    bit<16> vip_id;       // if the packet belongs to a VIP
    bit<16> sid;          // of the server, unless the packet is dropped
    bit<32> length;       // of the whole packet
    bit<32> pool;         // number of packets of the port so far that can be sampled
    bit<32> hop_latency;  // us from ingress to egress, in a postcard
    bit<32> queue_depth;  // of the egress queue behind the packet, in a postcard
}

#define ARCHITECTURE_HEADERS \
    packet_in_t packet_in;

// In the parser: words or units of the header, and words of the option, that are still to extract; bytes that an ICMP error
// quotes behind the IP header.
// In checksum.p4: one's complement sums of the fields that may be rewritten.
// In tree.p4: the operation on the tree, and the server, that the first pass chose for the second.
#define ARCHITECTURE_METADATA \
    bit<8> remaining; \
    bit<8> option_words; \
    bit<16> quoted_bytes; \
    bit<32> ipv4_residue; \
    bit<32> transport_residue; \
    bit<32> quoted_ipv4_residue; \
    bit<32> quoted_transport_residue; \
    bit<32> icmp_residue; \
    @field_list(RESUBMIT_FIELDS) \
    bit<8> resubmit_tree_op; \
    @field_list(RESUBMIT_FIELDS) \
    bit<16> resubmit_slot; \
    @field_list(RESUBMIT_FIELDS) \
    sid_t resubmit_sid; \
    @field_list(RESUBMIT_FIELDS) \
    bit<8> resubmit_outcome;

#endif
