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

#endif
