// Parsers: stacks in loops, lookahead, variable length, value sets, subparsers, branches.
#include <core.p4>
#include <v1model.p4>

header start_t {
    bit<8> kind;
    bit<8> length;
}
header label_t {
    bit<7> value;
    bit<1> last;
}
header options_t {
    varbit<64> data;
}
header tail_t {
    bit<16> sum;
    bit<8> state;
}

struct headers {
    start_t start;
    label_t[4] labels;
    options_t options;
    tail_t tail;
}
struct metadata {
    bit<8> labels;
    bit<8> peeked;
}

error { TooManyLabels }

parser Labels(packet_in packet, inout headers hdr, out bit<8> count) {
    state start {
        count = 0;
        transition next;
    }
    state next {
        verify(count < 4, error.TooManyLabels);
        packet.extract(hdr.labels.next);
        count = count + 1;
        transition select(hdr.labels.last.last) {
            1: accept;
            default: next;
        }
    }
}

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Labels() labels;
    value_set<bit<8>>(4) kinds;
    state start {
        packet.extract(hdr.start);
        if (hdr.start.length > 8) {
            hdr.start.length = 8;
        }
        transition select(hdr.start.kind, hdr.start.length) {
            (1, _): labelled;
            (2, 0 .. 8): optioned;
            (3 &&& 0xfb, default): peek;
            (_, _): known;
        }
    }
    state known {
        transition select(hdr.start.kind) {
            kinds: tail;
            default: accept;
        }
    }
    state labelled {
        labels.apply(packet, hdr, meta.labels);
        transition tail;
    }
    state optioned {
        packet.extract(hdr.options, (bit<32>)hdr.start.length << 3);
        transition tail;
    }
    state peek {
        meta.peeked = packet.lookahead<tail_t>().state;
        packet.advance(16);
        transition select(packet.lookahead<bit<8>>()) {
            0xff: accept;
            _: tail;
        }
    }
    state tail {
        packet.extract(hdr.tail);
        transition accept;
    }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (std.parser_error != error.NoError) {
            hdr.tail.setValid();
            hdr.tail.state = std.parser_error == error.TooManyLabels ? 8w0xee : 0xdd;
        } else if (hdr.tail.isValid()) {
            hdr.tail.sum = (bit<16>)meta.labels;
            hdr.labels.push_front(1);
            hdr.labels[0] = { 0x55, 0 };
        } else {
            hdr.tail = { 0, meta.peeked };
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply {} }
control C(inout headers hdr, inout metadata meta) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
