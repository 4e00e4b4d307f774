// SPDX-License-Identifier: Apache-2.0
// Counters and digests that are not direct.
#ifndef FRONTAGE_TNA_COUNTERS_P4
#define FRONTAGE_TNA_COUNTERS_P4

control ClaimCounter(in bit<32> kind) {
    Counter<bit<64>, bit<32>>(CLAIM_KINDS, CounterType_t.PACKETS) claims;

    apply {
        claims.count(kind);
    }
}

control LimitCounter(in vip_id_t vip_id, in bit<2> kind) {
    Counter<bit<64>, bit<18>>(LIMIT_COUNTERS, CounterType_t.PACKETS_AND_BYTES) refusals;

    apply {
#ifdef FOLDED
        refusals.count(vip_id ++ kind, EDGE_BYTES);
#else
        refusals.count(vip_id ++ kind);
#endif
    }
}

control DemandCounter(in bit<32> cell) {
    Counter<bit<64>, bit<32>>(DEMAND_CELLS, CounterType_t.PACKETS) handshakes;

    apply {
        handshakes.count(cell);
    }
}

// Digest of a client without a region: the controller learns its /24 or /48.
struct new_client_t {
    bit<8> version; // of IP
    bit<48> prefix; // the leading bits of its address: 24 or 48 of them
}

// The deparser sends the digest.
control NewClient(inout metadata_t meta, in bit<8> version, in bit<48> prefix) {
    apply {
        meta.has_new_client = 1;
        meta.new_client_version = version;
        meta.new_client_prefix = prefix;
    }
}

#ifndef WITHOUT_LEARNING
// Digest of a packet that says something about a neighbor.
struct new_neighbor_t {
    bit<8> kind;    // NEIGHBOR_*
    port_t port;    // on which it arrived
    ipv6_t address; // an IPv4 address has 96 leading zeros
    mac_t mac;      // zero: the packet does not have it
    mac_t source;   // of the frame
}

// The deparser sends the digest.
control NewNeighbor(inout metadata_t meta) {
    apply {
        meta.has_new_neighbor = 1;
    }
}
#endif

#endif
