// SPDX-License-Identifier: Apache-2.0
// A bit of everything that v1model has, for tests: stacks, variable lengths, unions, lookahead, value
// sets, all match kinds, selectors, registers, counters, meters, digests, clones, resubmission,
// recirculation, multicast, hashes and random numbers.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header tag_t { bit<7> label; bit<1> last; bit<8> value; }
header options_t { bit<8> len; varbit<320> data; }
header a_t { bit<8> kind; bit<24> a; }
header b_t { bit<8> kind; bit<16> b; bit<40> c; }
header_union u_t { a_t a; b_t b; }
// The command that decides what happens to the packet, and operands for it.
header command_t {
    bit<8> op; bit<8> arg; bit<4> x; bit<12> y; int<8> s; bit<32> z; bit<128> wide; bit<3> p; bit<61> q;
}

struct headers_t { ethernet_t eth; tag_t[4] tags; options_t options; u_t u; command_t cmd; }

struct meta_t {
    @field_list(1) bit<16> kept;
    @field_list(1) bit<8> passes;
    bit<16> lost;
    bit<2> color;
    bit<32> hash;
    bit<128> wide;
}

struct digest_t { bit<48> src; bit<16> kept; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    value_set<bit<16>>(4) command_types;
    state start {
        pkt.extract(hdr.eth);
        transition select(hdr.eth.type) {
            0x9000: tags;
            0x9001: options;
            0x9002: union_kind;
            command_types: command;
            0x9003: command;
            0xa000 &&& 0xf000: command;
            default: accept;
        }
    }
    state tags {
        pkt.extract(hdr.tags.next);
        transition select(hdr.tags.last.last) {
            1: accept;
            default: tags;
        }
    }
    state options {
        bit<8> len = pkt.lookahead<bit<8>>();
        verify(len <= 40, error.HeaderTooShort);
        pkt.extract(hdr.options, (bit<32>) len * 8);
        transition accept;
    }
    state union_kind {
        transition select(pkt.lookahead<bit<8>>()) {
            1: union_a;
            2: union_b;
            default: accept;
        }
    }
    state union_a { pkt.extract(hdr.u.a); transition accept; }
    state union_b { pkt.extract(hdr.u.b); transition accept; }
    state command { pkt.extract(hdr.cmd); transition accept; }
}

control V(inout headers_t hdr, inout meta_t m) { apply { } }

control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    register<bit<32>>(16) sums;
    register<bit<128>>(4) wides;
    counter(8, CounterType.packets_and_bytes) ops;
    meter(8, MeterType.packets) rate;
    direct_meter<bit<2>>(MeterType.packets) acl_meter;
    direct_counter(CounterType.packets_and_bytes) acl_counter;
    action_selector(HashAlgorithm.crc16, 32w64, 32w16) balancer;

    action drop() { mark_to_drop(std); }
    action forward(bit<9> port) { std.egress_spec = port; }
    action set_wide(bit<128> wide, bit<8> arg) { hdr.cmd.wide = wide; hdr.cmd.arg = arg; }
    action note(bit<16> v) { m.kept = v; acl_meter.read(m.color); }

    table acl {
        key = { hdr.eth.src: ternary; hdr.eth.type: range; hdr.cmd.wide: optional; }
        actions = { note; NoAction; }
        size = 512;
        counters = acl_counter;
        meters = acl_meter;
        default_action = NoAction();
    }
    table wide_routes {
        key = { hdr.cmd.wide: lpm; hdr.cmd.isValid(): exact; }
        actions = { set_wide; NoAction; }
        size = 512;
        support_timeout = true;
        default_action = NoAction();
    }
    table ports {
        key = { hdr.eth.dst: exact; hdr.eth.src: selector; hdr.eth.type: selector; }
        actions = { forward; drop; }
        implementation = balancer;
        size = 64;
    }
    table fixed {
        key = { hdr.cmd.op: ternary; }
        actions = { forward; drop; }
        const entries = {
            0x10 &&& 0xff: forward(10);
            0x10 &&& 0xf0: forward(11);
        }
        default_action = forward(1);
    }
    apply {
        std.egress_spec = 1;
        acl.apply();
        if (m.color == 2) { drop(); exit; }
        if (hdr.tags[0].isValid()) {
            hdr.tags[0].value = hdr.tags[0].value |+| 250;
            if (hdr.tags[0].label == 1) { hdr.tags.push_front(1); hdr.tags[0].setValid(); hdr.tags[0].label = 9; }
            if (hdr.tags[0].label == 2) { hdr.tags.pop_front(1); }
        }
        if (hdr.u.a.isValid()) { hdr.u.b.setValid(); hdr.u.b.kind = 2; hdr.u.b.b = hdr.u.a.a[15:0]; }
        if (hdr.options.isValid()) { std.priority = 3; }
        if (!ports.apply().hit) { fixed.apply(); }
        if (hdr.cmd.isValid()) {
            wide_routes.apply();
            ops.count((bit<32>) hdr.cmd.op);
            bit<32> sum;
            sums.read(sum, (bit<32>) hdr.cmd.x);
            sum = sum + hdr.cmd.z;
            sums.write((bit<32>) hdr.cmd.x, sum);
            wides.write((bit<32>) hdr.cmd.p, hdr.cmd.wide);
            hash(m.hash, HashAlgorithm.crc32, 32w0, { hdr.eth.src, hdr.cmd.p, hdr.cmd.q, hdr.cmd.wide }, 32w1000);
            switch (hdr.cmd.op) {
                1: { hdr.cmd.z = sum; }
                2: { hdr.cmd.y = hdr.cmd.y << hdr.cmd.arg; hdr.cmd.q = hdr.cmd.q >> hdr.cmd.arg; }
                3: { hdr.cmd.s = hdr.cmd.s >> 1; hdr.cmd.x = hdr.cmd.x |-| 3; }
                4: { hdr.cmd.wide = hdr.cmd.wide + (hdr.cmd.wide << hdr.cmd.arg) ^ ~hdr.cmd.wide; }
                5: { rate.execute_meter((bit<32>) hdr.cmd.arg, hdr.cmd.p); }
                6: { m.kept = hdr.cmd.y ++ hdr.cmd.x; digest<digest_t>(1, { hdr.eth.src, m.kept }); }
                7: { m.kept = 77; clone_preserving_field_list(CloneType.I2E, (bit<32>) hdr.cmd.arg, 1); }
                8: { if (m.passes < 3) { m.passes = m.passes + 1; m.lost = 5; resubmit_preserving_field_list(1); } }
                9: { std.mcast_grp = (bit<16>) hdr.cmd.arg; }
                10: { resubmit_preserving_field_list(1); }
                11: { random(hdr.cmd.z, 10, 20); }
                12: { truncate((bit<32>) hdr.cmd.arg); }
                13: { hdr.tags[hdr.cmd.p[1:0]].setValid(); hdr.tags[hdr.cmd.p[1:0]].value = hdr.cmd.arg; }
                14: { hdr.cmd.z = hdr.cmd.z * hdr.cmd.z - (bit<32>) hdr.cmd.arg; }
                15: { hdr.cmd.z = m.hash; log_msg("hash {} of {}", { m.hash, hdr.cmd.wide }); }
                16: { assert(hdr.cmd.arg != 0); }
            }
        }
    }
}

control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    apply {
        if (hdr.cmd.isValid()) {
            if (hdr.cmd.op == 20) { m.kept = 99; clone_preserving_field_list(CloneType.E2E, (bit<32>) hdr.cmd.arg, 1); hdr.cmd.op = 0; }
            if (hdr.cmd.op == 21 && m.passes < (bit<8>) hdr.cmd.arg) {
                m.passes = m.passes + 1;
                recirculate_preserving_field_list(1);
            }
            if (hdr.cmd.op == 22) { mark_to_drop(std); }
            if (hdr.cmd.op == 23) {
                hdr.cmd.wide = 32w0 ++ (bit<32>) std.instance_type ++ (bit<16>) std.egress_rid ++ (bit<48>) std.deq_timedelta;
                hdr.cmd.z = (bit<32>) std.packet_length;
            }
            if (std.instance_type != 0) { hdr.cmd.x = (bit<4>) std.instance_type; hdr.cmd.z = (bit<32>) m.kept; }
        }
    }
}

control C(inout headers_t hdr, inout meta_t m) {
    apply {
        update_checksum_with_payload(hdr.u.b.isValid(), { hdr.u.b.kind, hdr.u.b.c }, hdr.u.b.b, HashAlgorithm.csum16);
    }
}

control D(packet_out pkt, in headers_t hdr) {
    apply { pkt.emit(hdr); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
