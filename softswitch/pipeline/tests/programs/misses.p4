// SPDX-License-Identifier: Apache-2.0
// Direct counters and meters of packets that hit no entry: of a table with a key, and of one without.
#include <core.p4>
#include <v1model.p4>

header base_t { bit<8> kind; bit<8> known; bit<8> any; }
struct headers_t { base_t base; }
struct meta_t { bit<2> known; bit<2> any; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.base);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t m) { apply { } }
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) known_counter;
    direct_counter(CounterType.packets_and_bytes) any_counter;
    direct_meter<bit<2>>(MeterType.packets) known_meter;
    direct_meter<bit<2>>(MeterType.packets) any_meter;
    action color_known() { known_meter.read(m.known); }
    action color_any() { any_meter.read(m.any); }
    table known {
        key = { hdr.base.kind: exact; }
        actions = { color_known; }
        counters = known_counter;
        meters = known_meter;
        default_action = color_known();
    }
    table any {
        actions = { color_any; }
        counters = any_counter;
        meters = any_meter;
        const default_action = color_any();
    }
    apply {
        std.egress_spec = 1;
        // No colour.
        m.known = 3;
        m.any = 3;
        known.apply();
        any.apply();
        hdr.base.known = (bit<8>) m.known;
        hdr.base.any = (bit<8>) m.any;
    }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout meta_t m) { apply { } }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
