// SPDX-License-Identifier: Apache-2.0
// A large table of each match kind. Every entry has action data and a counter.
#include <core.p4>
#include <v1model.p4>

header key_t {
    bit<48> mac; bit<32> ipv4; bit<128> ipv6;
    bit<32> src; bit<32> dst; bit<16> src_port; bit<16> dst_port; bit<8> proto;
}

struct headers_t { key_t key; }
struct meta_t { }

parser P(packet_in pkt, out headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.key);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t m) { apply { } }

control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    action forward(bit<9> port) { std.egress_spec = port; }
    direct_counter(CounterType.packets_and_bytes) exact_counter;
    table exact_48 {
        key = { hdr.key.mac: exact; }
        actions = { forward; NoAction; }
        size = 1048576;
        counters = exact_counter;
    }
    direct_counter(CounterType.packets_and_bytes) ipv4_counter;
    table lpm_32 {
        key = { hdr.key.ipv4: lpm; }
        actions = { forward; NoAction; }
        size = 1048576;
        counters = ipv4_counter;
    }
    direct_counter(CounterType.packets_and_bytes) ipv6_counter;
    table lpm_128 {
        key = { hdr.key.ipv6: lpm; }
        actions = { forward; NoAction; }
        size = 1048576;
        counters = ipv6_counter;
    }
    direct_counter(CounterType.packets_and_bytes) ternary_counter;
    table ternary_104 {
        key = {
            hdr.key.src: ternary;
            hdr.key.dst: ternary;
            hdr.key.src_port: range;
            hdr.key.dst_port: range;
            hdr.key.proto: ternary;
        }
        actions = { forward; NoAction; }
        size = 1048576;
        counters = ternary_counter;
    }
    apply {
        exact_48.apply();
        lpm_32.apply();
        lpm_128.apply();
        ternary_104.apply();
    }
}

control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) { apply { } }

control C(inout headers_t hdr, inout meta_t m) { apply { } }

control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.key); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
