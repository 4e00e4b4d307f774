// SPDX-License-Identifier: Apache-2.0
/* One of everything that P4Runtime can see, for the tests of the server and of packet forwarding. */
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> len;
    bit<16> id;
    bit<3> flags;
    bit<13> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

/* Made by egress in front of the payload of packets of type 0x88b5. */
header probe_t {
    bit<48> enq_timestamp;
    bit<32> deq_timedelta;
    bit<24> enq_qdepth;
    bit<24> deq_qdepth;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    ipv4_t ipv4;
    probe_t probe;
}

struct learn_t {
    bit<48> address;
    bit<9> port;
}

struct meta_t {
    bit<8> class;
    bit<2> color;
}

parser FeaturesParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) ip_types;

    state start {
        transition select(std.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: parse_ipv4;
            ip_types: parse_ipv4;
            0x88b5: parse_probe;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
    state parse_probe {
        packet.extract(hdr.probe);
        transition accept;
    }
}

control FeaturesVerify(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control FeaturesIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(64, CounterType.packets_and_bytes) port_counter;
    meter(16, MeterType.packets) port_meter;
    register<bit<32>>(128) scratch;
    direct_counter(CounterType.packets_and_bytes) route_counter;
    direct_counter(CounterType.packets_and_bytes) constant_counter;
    direct_meter<bit<2>>(MeterType.bytes) route_meter;
    action_selector(HashAlgorithm.crc16, 64, 16) balancer;

    action drop() {
        mark_to_drop(std);
    }
    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action forward_urgent(bit<9> port, bit<3> priority) {
        std.egress_spec = port;
        std.priority = priority;
    }
    action flood(bit<16> group) {
        std.mcast_grp = group;
    }
    action mirror(bit<9> port) {
        std.egress_spec = port;
        clone(CloneType.I2E, 5);
    }
    action to_cpu() {
        std.egress_spec = CPU_PORT;
    }
    action route(bit<48> dst, bit<9> port) {
        route_counter.count();
        hdr.ethernet.dst = dst;
        std.egress_spec = port;
    }
    action route_drop() {
        route_counter.count();
        mark_to_drop(std);
    }
    action set_class(bit<8> class) {
        meta.class = class;
    }
    action learn() {
        digest<learn_t>(1, { hdr.ethernet.src, std.ingress_port });
    }

    /* exact, with direct actions of every kind */
    table l2 {
        key = {
            std.ingress_port: exact;
            hdr.ethernet.dst: exact;
        }
        actions = { forward; forward_urgent; flood; mirror; to_cpu; drop; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    /* idle time-outs */
    table seen {
        key = { hdr.ethernet.src: exact; }
        actions = { NoAction; @defaultonly learn; }
        default_action = learn();
        support_timeout = true;
        size = 1024;
    }

    /* LPM with direct counter and meter */
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { route; route_drop; }
        counters = route_counter;
        meters = route_meter;
        default_action = route_drop();
        size = 32768;
    }

    /* ternary, range and optional */
    table acl {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.len: range;
            hdr.ipv4.protocol: optional;
        }
        actions = { set_class; drop; NoAction; }
        default_action = NoAction();
        size = 8;
    }

    /* action selector */
    table spread {
        key = {
            meta.class: exact;
            hdr.ipv4.src: selector;
            hdr.ipv4.dst: selector;
        }
        actions = { forward; drop; NoAction; }
        implementation = balancer;
        size = 64;
    }

    /* constant, with a direct counter */
    table constant {
        key = { hdr.ethernet.type: exact; }
        actions = { set_class; NoAction; }
        const entries = {
            0x86dd: set_class(6);
            0x0806: set_class(7);
        }
        counters = constant_counter;
        default_action = NoAction();
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        port_counter.count((bit<32>)std.ingress_port);
        port_meter.execute_meter((bit<32>)std.ingress_port & 15, meta.color);
        scratch.write(0, (bit<32>)std.ingress_port);
        constant.apply();
        seen.apply();
        if (hdr.ipv4.isValid()) {
            acl.apply();
            if (routes.apply().hit) {
                route_meter.read(meta.color);
            }
            spread.apply();
        }
        l2.apply();
    }
}

control FeaturesEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
            hdr.packet_in.reason = 1;
        }
        if (hdr.probe.isValid()) {
            hdr.probe.enq_timestamp = (bit<48>)std.enq_timestamp;
            hdr.probe.deq_timedelta = std.deq_timedelta;
            hdr.probe.enq_qdepth = (bit<24>)std.enq_qdepth;
            hdr.probe.deq_qdepth = (bit<24>)std.deq_qdepth;
        }
    }
}

control FeaturesCompute(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control FeaturesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.probe);
    }
}

V1Switch(FeaturesParser(), FeaturesVerify(), FeaturesIngress(), FeaturesEgress(), FeaturesCompute(), FeaturesDeparser()) main;
