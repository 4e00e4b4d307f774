// What the controls need of a target, for v1model (BMv2 and softswitch): counters, stateful memory, hashes and checksums. Another
// architecture supplies controls of the same names.
#ifndef FRONTAGE_V1MODEL_ARCH_P4
#define FRONTAGE_V1MODEL_ARCH_P4

#define DIRECT_COUNTER(name) direct_counter(CounterType.packets_and_bytes) name;

control ClaimCounter(in bit<32> kind) {
    counter(CLAIM_KINDS, CounterType.packets) claims;

    apply {
        claims.count(kind);
    }
}

#endif
