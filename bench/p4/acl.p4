// SPDX-License-Identifier: Apache-2.0
// A packet filter from the five-tuple to a port and a class. The Ethernet destination of the output packet is the class.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }

header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> len;
    bit<16> id; bit<3> flags; bit<13> frag;
    bit<8> ttl; bit<8> proto; bit<16> checksum;
    bit<32> src; bit<32> dst;
}

header ports_t { bit<16> src; bit<16> dst; }

struct headers_t { ethernet_t eth; ipv4_t ipv4; ports_t ports; }
struct meta_t { }

parser P(packet_in pkt, out headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.eth);
        transition select(hdr.eth.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        pkt.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.proto) {
            (5, 6): ports;
            (5, 17): ports;
            default: accept;
        }
    }
    state ports {
        pkt.extract(hdr.ports);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t m) { apply { } }

control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    action deny() { mark_to_drop(std); }
    action permit(bit<9> port, bit<48> class) {
        std.egress_spec = port;
        hdr.eth.dst = class;
    }
    direct_counter(CounterType.packets_and_bytes) acl_counter;
    table acl {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ports.src: range;
            hdr.ports.dst: range;
            hdr.ipv4.proto: ternary;
        }
        actions = { permit; deny; }
        default_action = deny();
        size = 1048576;
        counters = acl_counter;
    }
    apply {
        if (hdr.ports.isValid()) {
            acl.apply();
        } else {
            deny();
        }
    }
}

control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) { apply { } }

control C(inout headers_t hdr, inout meta_t m) { apply { } }

control D(packet_out pkt, in headers_t hdr) {
    apply { pkt.emit(hdr.eth); pkt.emit(hdr.ipv4); pkt.emit(hdr.ports); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
