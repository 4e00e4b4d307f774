// SPDX-License-Identifier: Apache-2.0
// Everything that packets of several threads share: tables with counters and idle time-outs, registers, meters, digests.
#include <core.p4>
#include <v1model.p4>

header command_t {
    bit<16> flow;
    bit<16> key;
    bit<32> x;
    bit<32> y;
    bit<32> seen;
    bit<32> total;
    bit<32> limit;
    bit<8> color;
}

struct headers_t { command_t command; }
struct meta_t { bit<32> total; }
struct note_t { bit<16> flow; bit<32> seen; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.command);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t m) { apply { } }

control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    register<bit<32>>(256) seen;
    register<bit<32>>(1) total;
    register<bit<32>>(1) limits;
    meter(4, MeterType.packets) rates;

    direct_counter(CounterType.packets_and_bytes) first_counter;
    action set_x(bit<32> x) { hdr.command.x = x; }
    table first {
        key = { hdr.command.key: exact; }
        actions = { set_x; NoAction; }
        default_action = NoAction();
        size = 16384;
        counters = first_counter;
    }

    direct_counter(CounterType.packets_and_bytes) second_counter;
    action set_y(bit<32> y) { hdr.command.y = y; }
    table second {
        key = { hdr.command.key: ternary; hdr.command.flow: ternary; }
        actions = { set_y; NoAction; }
        default_action = NoAction();
        size = 1024;
        counters = second_counter;
        support_timeout = true;
    }

    // The register is read and written in one action.
    action count_flow() {
        bit<32> n;
        seen.read(n, (bit<32>) hdr.command.flow);
        hdr.command.seen = n + 1;
        seen.write((bit<32>) hdr.command.flow, n + 1);
    }

    // The register is read and written in two actions.
    action read_total() { total.read(m.total, 0); }
    action write_total() { total.write(0, m.total); }

    action read_limit() { limits.read(hdr.command.limit, 0); }

    apply {
        first.apply();
        second.apply();
        read_limit();
        count_flow();
        read_total();
        if (m.total < 0xffffffff) {
            m.total = m.total + 1;
            write_total();
        }
        hdr.command.total = m.total;
        rates.execute_meter(0, hdr.command.color);
        if (hdr.command.key == 7) {
            digest<note_t>(1, { hdr.command.flow, hdr.command.seen });
        }
        std.egress_spec = 1;
    }
}

control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    counter(256, CounterType.packets_and_bytes) sent;
    apply { sent.count((bit<32>) hdr.command.flow); }
}

control C(inout headers_t hdr, inout meta_t m) { apply { } }

control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.command); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
