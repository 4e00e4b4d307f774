// Corners of the language: loops of unknown length, elements extracted by a computed index,
// parameters without a direction, numbers for new types, exact integers.
#include <core.p4>
#include <v1model.p4>

type bit<8> label_t;
const label_t FIRST = 0x40;

header item_t {
    bit<8> value;
}
header head_t {
    bit<8> op;
    bit<8> low;
    bit<8> high;
    int<8> level;
}
struct headers {
    head_t head;
    item_t[3] items;
}
struct metadata {}

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    bit<8> count;
    state start {
        packet.extract(hdr.head);
        count = 0;
        transition select(hdr.head.op) {
            2: items;
            default: accept;
        }
    }
    state items {
        packet.extract(hdr.items[count]);
        count = count + 1;
        transition select(hdr.items[count - 1].value) {
            0: accept;
            default: items;
        }
    }
}
control V(inout headers hdr, inout metadata meta) { apply {} }

control Scale(bit<8> factor, inout bit<8> x) {
    apply {
        x = x * factor;
    }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action sum(inout head_t h) {
        bit<8> total = 0;
        for (bit<8> i in h.low .. h.high) {
            if (i == 7) {
                continue;
            }
            if (total > 100) {
                break;
            }
            total = total + i;
            // The rounds are counted apart.
            i = 200;
            h.high = 0;
        }
        h.low = total;
    }
    apply {
        std.egress_spec = 1;
        switch (hdr.head.op) {
            1: { sum(hdr.head); }
            2: { hdr.head.low = std.parser_error == error.StackOutOfBounds ? 8w1 : 0; }
            3: {
                Scale.apply(3, hdr.head.low);
                label_t label = 5;
                label = hdr.head.high == 0 ? FIRST : label;
                hdr.head.high = (bit<8>) label;
                hdr.head.level = (int<8>) ((int) hdr.head.level + 1);
            }
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply {} }
control C(inout headers hdr, inout metadata meta) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
