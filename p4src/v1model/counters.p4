// SPDX-License-Identifier: Apache-2.0
// Counters and digests that are not direct.
#ifndef FRONTAGE_V1MODEL_COUNTERS_P4
#define FRONTAGE_V1MODEL_COUNTERS_P4

control ClaimCounter(in bit<32> kind) {
    counter(CLAIM_KINDS, CounterType.packets) claims;

    apply {
        claims.count(kind);
    }
}

control MssCounter(in bit<32> kind) {
    counter(MSS_KINDS, CounterType.packets) segments;

    apply {
        segments.count(kind);
    }
}

control LimitCounter(in vip_id_t vip_id, in bit<2> kind) {
    counter(LIMIT_COUNTERS, CounterType.packets_and_bytes) refusals;

    apply {
        refusals.count((bit<32>)(vip_id ++ kind));
    }
}

control SynCounter(in vip_id_t vip_id, in bit<2> kind) {
    counter(SYN_COUNTERS, CounterType.packets) packets;

    apply {
        packets.count((bit<32>)(vip_id ++ kind));
    }
}

control OpeningCounter(in sid_t sid, in bit<2> kind) {
    counter(4 * SERVERS, CounterType.packets) packets;

    apply {
        packets.count((bit<32>)(sid ++ kind));
    }
}

control DemandCounter(in bit<32> cell) {
    counter(DEMAND_CELLS, CounterType.packets) handshakes;

    apply {
        handshakes.count(cell);
    }
}

// Digest of a client without a region: the controller learns its /24 or /48.
struct new_client_t {
    bit<8> version; // of IP
    bit<48> prefix; // the leading bits of its address: 24 or 48 of them
}

control NewClient(inout metadata_t meta, in bit<8> version, in bit<48> prefix) {
    apply {
        digest<new_client_t>(1, { version, prefix });
    }
}

// Digest of a packet that says something about a neighbor.
struct new_neighbor_t {
    bit<8> kind;    // NEIGHBOR_*
    port_t port;    // on which it arrived
    ipv6_t address; // an IPv4 address has 96 leading zeros
    mac_t mac;      // zero: the packet does not have it
    mac_t source;   // of the frame
}

control NewNeighbor(inout metadata_t meta) {
    apply {
        digest<new_neighbor_t>(2, { meta.sender.kind, meta.ingress_port, meta.sender.address, meta.sender.mac, meta.sender.source });
    }
}

#endif
