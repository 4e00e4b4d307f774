// SPDX-License-Identifier: Apache-2.0
// The headers and metadata that only Tofino needs, and its direct counters. The files of this folder hold everything
// that depends on the architecture: the parser, counters, stateful memory, hashes and checksums. The controls and macros
// that ../control needs have the same names as in the folders of other architectures.
#ifndef FRONTAGE_TNA_ARCH_P4
#define FRONTAGE_TNA_ARCH_P4

// Before a block of an action: the hash unit computes its assignments, of 32 bits together. An ALU only combines containers
// of the same size, at the same offsets. Such an action has nothing else.
#define IN_HASH @in_hash

#define DIRECT_COUNTER(name) DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) name;
#ifdef FOUR_PIPES
#define COUNT(name) name.count(EDGE_BYTES);
#else
#define COUNT(name) name.count();
#endif
#define DIRECT_METER(name, kind) DirectMeter(kind) name;
#define METER_PACKETS MeterType_t.PACKETS
#define METER_BYTES MeterType_t.BYTES
#define READ_METER(name, color) color = name.execute();

// Chooses a next hop of a group by hash (control/groups.p4).
#define NEXT_HOP_SELECTOR(name) \
    ActionProfile(GROUP_MEMBERS) next_hop_members; \
    Hash<bit<16>>(HashAlgorithm_t.CRC16) next_hop_hash; \
    ActionSelector(next_hop_members, next_hop_hash, SelectorMode_t.FAIR, GROUP_SIZE, NEXT_HOP_GROUPS) name;

// Time in ticks of 2^30 ns, 1.07 s, plus 2^18. It begins again after 78 hours, as the timestamps do.
typedef bit<32> tick_t;

// Samples need clones with their own metadata (docs/samples.md).
#define WITHOUT_SAMPLES

// The ingress port of packets from the controller. No chip has this port, but softswitch does; for a board, compile with
// the number of its CPU port.
#ifndef CPU_PORT
#define CPU_PORT 510
#endif

#if __TARGET_TOFINO__ == 1
// The number within its pipe
#define RECIRCULATION_PORT 68
// The mask of the low four bits, for ParserCounter
#define COUNTER_MASK_4 3
// The stage of the leaves of the tournament trees (stateful.p4). The levels take the stages behind it.
#define LEAF_STAGE 1
#else
#define RECIRCULATION_PORT 6
#define LEAF_STAGE 7
#define COUNTER_MASK_4 0x0f
#endif

// Extension headers that the parser follows, of 8 bytes each
#define IPV6_EXTENSION_UNITS 2

// Headers that never leave the switch. Only bytes cross the traffic manager, so these carry what metadata carry on other
// architectures. The first byte tells them apart.
const bit<8> INTERNAL_BRIDGE = 1;
const bit<8> INTERNAL_WORKER = 2;
const bit<8> INTERNAL_COPY = 3;
const bit<8> INTERNAL_FOLD = 4;
const bit<8> INTERNAL_SCHEDULED = 5;
const bit<8> INTERNAL_QUEUE = 6;
const bit<8> INTERNAL_GATE = 7;
const bit<8> INTERNAL_SITE = 8;
const bit<8> INTERNAL_REMOTE = 9;

// From ingress to egress, in front of a packet that leaves.
#if defined(FOUR_PIPES)
header bridge_t {
    bit<8> kind;
    bit<8> discipline;
    bit<8> length_reason; // why the packet is dropped if it is shorter than `length`
    bit<16> length;       // from the IP header
    bit<16> other_bytes;  // the headers before that length, this header, and the frame check sequence
    bit<13> reserved;
    bit<19> ecn_threshold;
    bit<16> report_mask;
}

const bit<16> BRIDGE_BYTES = 13;
#elif defined(COMPACT)
header bridge_t {
    bit<8> kind;
    bit<8> length_reason; // why the packet is dropped if it is shorter than `length`
    bit<16> length;       // from the IP header
    bit<16> other_bytes;  // the headers before that length, this header, and the frame check sequence
}

const bit<16> BRIDGE_BYTES = 6;
#else
header bridge_t {
    bit<8> kind;
    bit<8> discipline;
    bit<8> length_reason;  // why the packet is dropped if it is shorter than `length`
    bit<16> length;        // from the IP header
    bit<16> other_bytes;   // the headers before that length, this header, and the frame check sequence
    bit<1> has_outer;      // the outer headers of a tunnel are in front of the packet
    bit<4> reserved;
    bit<19> ecn_threshold;
    bit<16> report_mask;
}

const bit<16> BRIDGE_BYTES = 12;
#endif
const bit<16> FRAME_CHECK_BYTES = 4;

// Through a mirror session and a recirculation port, instead of a packet (worker.p4).
header worker_t {
    bit<8> kind;
#ifndef COMPACT
    bit<7> reserved;
    bit<1> has_queue;       // the queue of egress_port changed
    bit<7> reserved2;
    bit<9> origin_port;     // of the packet that caused it
    bit<7> reserved3;
    bit<9> egress_port;
    bit<13> reserved4;
    bit<19> depth_after;
    bit<8> bound_decrement;
#endif
    bit<8> op;              // on the tree: op to score as in tree_t (include/metadata.p4)
    bit<8> depth;
    bit<16> slot;
    bit<16> sid;
    bit<16> score;
    bit<16> root; // the first slot of the tree
    bit<32> best; // as in tree_t: the leaf without its headroom; once egress has changed the tree, the best of the tree
}

// Through a mirror session, in front of a copy of a first flight (control/copies.p4).
header copy_t {
    bit<8> kind;
    bit<8> origin_site;
    bit<32> connection_hash;
}

// Resubmitted instead of port metadata: why the packet passes ingress a second time, and what control/tunnel.p4 found in
// outer headers.
const bit<8> SECOND_PASS_TUNNEL = 0;
const bit<8> SECOND_PASS_HANDSHAKE = 1; // removes the handshake (control/cclb4.p4)

header second_pass_t {
    bit<8> kind;
    bit<8> peer_site;
    bit<16> peer_source_set;
    bit<16> inner_length;
#if __TARGET_TOFINO__ == 1
    bit<16> reserved; // 8 bytes together
#else
    bit<144> reserved; // 24 bytes together
#endif
}

struct resubmitted_t {
    bit<8> kind;
    bit<8> peer_site;
    bit<16> peer_source_set;
    bit<16> inner_length;
}

#ifndef FOLDED
#define FOLD_HEADER
#endif

#ifndef FOUR_PIPES
#define SCHEDULING_HEADERS
#endif

#ifndef FOUR_PIPES
#define STEERING_HEADERS
#endif

#define ARCHITECTURE_HEADERS \
    STEERING_HEADERS \
    SCHEDULING_HEADERS \
    bridge_t bridge; \
    second_pass_t second_pass; \
    FOLD_HEADER \
    worker_t worker; \
    copy_t copy;

// Where the early checks write the reason for which they drop a packet. They run in the same stages, and Verdict
// (verdict.p4) chooses the first reason.
#define PORT_VERDICT port_verdict
#define HEADER_VERDICT header_verdict
#define NEIGHBOR_VERDICT neighbor_verdict
#define TUNNEL_VERDICT tunnel_verdict
#define VIP_VERDICT vip_verdict
#define REAL_SERVER_VERDICT real_server_verdict
#define COOKIE_VERDICT cookie_verdict

#ifndef PROFILE_METADATA
#define PROFILE_METADATA
#endif

// For the deparsers: checksums (checksum.p4), the mirror session, and the digest. Of workers: worker.p4.
#define ARCHITECTURE_METADATA \
    bit<1> bad_ipv4_checksum; \
    bit<16> ipv4_residue; \
    bit<16> transport_residue; \
    bit<1> update_tcp; \
    bit<1> update_udp; \
    bit<8> mirror_kind; \
    bit<16> mirror_session; \
    bit<8> second_pass_kind; \
    bit<1> has_queue; \
    bit<1> writes_root; \
    bit<8> port_verdict; \
    bit<8> header_verdict; \
    bit<8> neighbor_verdict; \
    bit<8> tunnel_verdict; \
    bit<8> vip_verdict; \
    bit<8> real_server_verdict; \
    bit<8> cookie_verdict; \
    bit<8> early_verdict; \
    bit<8> new_client_version; \
    bit<48> new_client_prefix; \
    bit<1> has_new_client; \
    bit<1> has_new_neighbor; \
    bit<32> worker_best; \
    PROFILE_METADATA

#endif
