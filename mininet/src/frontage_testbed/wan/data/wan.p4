// SPDX-License-Identifier: Apache-2.0
// The Internet between clients, name servers and sites, in one switch.
//
//   packet from a host's or site's port:  its destination's route selects the output port.
//                                         -> Delay line of the two places: a port in loopback mode whose link has the
//                                            one-way delay (and loss).
//   packet from a delay line:             -> The selected port, with the neighbor's Ethernet address.
//
// Routes to anycast prefixes depend on the input port: as with BGP, the network leads each client to one site.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV6 = 0x86dd;
const bit<9> FIRST_DELAY_LINE = 128;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv6_t {
    bit<4> version;
    bit<8> traffic_class;
    bit<20> flow_label;
    bit<16> payload_length;
    bit<8> next_header;
    bit<8> hop_limit;
    bit<128> src;
    bit<128> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv6_t ipv6;
}

struct metadata_t {
    bit<9> out_port;
}

parser WanParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}

control WanVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control WanIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() {
        mark_to_drop(std);
    }
    action leave_by(bit<9> port) {
        meta.out_port = port;
    }
    action wait_in(bit<9> line) {
        // The destination address carries the output port while the packet waits.
        hdr.ethernet.dst = (bit<48>)meta.out_port;
        std.egress_spec = line;
    }
    action deliver(bit<48> neighbor, bit<48> own) {
        hdr.ethernet.dst = neighbor;
        hdr.ethernet.src = own;
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
        std.egress_spec = meta.out_port;
    }

    table anycast {
        key = {
            std.ingress_port: exact;
            hdr.ipv6.dst: lpm;
        }
        actions = { leave_by; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    table unicast {
        key = { hdr.ipv6.dst: lpm; }
        actions = { leave_by; drop; }
        default_action = drop();
        size = 1024;
    }
    table delay_line {
        key = {
            std.ingress_port: exact;
            meta.out_port: exact;
        }
        actions = { wait_in; drop; }
        default_action = drop();
        size = 16384;
    }
    table neighbor {
        key = { meta.out_port: exact; }
        actions = { deliver; drop; }
        default_action = drop();
        size = 128;
    }

    apply {
        if (!hdr.ipv6.isValid() || hdr.ipv6.hop_limit <= 1) {
            drop();
        } else if (std.ingress_port >= FIRST_DELAY_LINE) {
            meta.out_port = (bit<9>)hdr.ethernet.dst;
            neighbor.apply();
        } else {
            bool routed = anycast.apply().hit;
            if (!routed) {
                routed = unicast.apply().hit;
            }
            if (routed) {
                delay_line.apply();
            }
        }
    }
}

control WanEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {}
}

control WanUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control WanDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv6);
    }
}

V1Switch(WanParser(), WanVerify(), WanIngress(), WanEgress(), WanUpdate(), WanDeparser()) main;
