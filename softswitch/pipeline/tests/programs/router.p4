// SPDX-License-Identifier: Apache-2.0
// A plain IPv4 router: longest prefix to a next hop, next hop to port and MAC, TTL, header checksum.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }

header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> len;
    bit<16> id; bit<3> flags; bit<13> frag;
    bit<8> ttl; bit<8> proto; bit<16> checksum;
    bit<32> src; bit<32> dst;
}

struct headers_t { ethernet_t eth; ipv4_t ipv4; }
struct meta_t { bit<16> next_hop; }

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
        verify(hdr.ipv4.version == 4, error.ParserInvalidArgument);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t m) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.frag, hdr.ipv4.ttl, hdr.ipv4.proto, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) {
    action drop() { mark_to_drop(std); }
    action set_next_hop(bit<16> next_hop) { m.next_hop = next_hop; }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { set_next_hop; drop; }
        default_action = drop();
        size = 16384;
    }
    action forward(bit<9> port, bit<48> src, bit<48> dst) {
        std.egress_spec = port;
        hdr.eth.src = src;
        hdr.eth.dst = dst;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    direct_counter(CounterType.packets_and_bytes) hops_counter;
    table next_hops {
        key = { m.next_hop: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1024;
        counters = hops_counter;
    }
    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && std.checksum_error == 0) {
            if (routes.apply().hit) {
                next_hops.apply();
            }
        } else {
            drop();
        }
    }
}

control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t std) { apply { } }

control C(inout headers_t hdr, inout meta_t m) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.frag, hdr.ipv4.ttl, hdr.ipv4.proto, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control D(packet_out pkt, in headers_t hdr) {
    apply { pkt.emit(hdr.eth); pkt.emit(hdr.ipv4); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
