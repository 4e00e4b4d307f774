// SPDX-License-Identifier: Apache-2.0
// Stack elements that the packet itself chooses: in a table's key, in a condition and in `last`; and a log
// message without values.
#include <core.p4>
#include <v1model.p4>

header base_t { bit<8> index; bit<8> result; }
header item_t { bit<8> value; }
struct headers_t { base_t base; item_t[3] items; }
struct meta_t { item_t last; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.base);
        pkt.extract(hdr.items.next);
        pkt.extract(hdr.items.next);
        m.last = hdr.items.last;
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t m) { apply { } }
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    action found(bit<8> result) { hdr.base.result = result; }
    action missed() { hdr.base.result = m.last.value; }
    table chosen {
        key = { hdr.items[hdr.base.index].value: exact; }
        actions = { found; missed; }
        const entries = { 5: found(50); 6: found(60); }
        default_action = missed();
    }
    apply {
        std.egress_spec = 4;
        log_msg("here");
        chosen.apply();
        if (hdr.items[hdr.base.index].isValid()) { std.egress_spec = 5; }
    }
}
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout meta_t m) { apply { } }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
