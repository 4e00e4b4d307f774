// An IPv4 router: LPM table, ternary access list, counters, a register, packet-in and packet-out.
#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

#ifndef CPU_PORT
#define CPU_PORT 510
#endif

type bit<9> port_t;

@controller_header("packet_in")
header packet_in_t {
    @id(2) bit<9> ingress_port;
    bit<7> pad;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    @hidden bit<7> pad;
}

struct headers {
    packet_out_t packet_out;
    packet_in_t packet_in;
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata {
    @field_list(1)
    bit<32> next_hop;
    bit<1> permitted;
}

parser RouterParser(packet_in packet, out headers hdr, inout metadata meta,
                    inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: packet_out;
            default: ethernet;
        }
    }
    state packet_out {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        transition accept;
    }
}

control RouterVerify(inout headers hdr, inout metadata meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_FIELDS(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    counter(512, CounterType.packets_and_bytes) ports;
    direct_counter(CounterType.packets) acl_hits;
    register<bit<48>>(512) last_seen;

    action drop() {
        mark_to_drop(std);
    }
    @brief("Sends the packet to a neighbour.")
    action forward(port_t port, bit<48> source, @id(7) bit<48> neighbour) {
        std.egress_spec = (bit<9>)port;
        hdr.ethernet.src = source;
        hdr.ethernet.dst = neighbour;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    action to_cpu() {
        std.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = std.ingress_port;
        hdr.packet_in.pad = 0;
    }
    action permit() {
        acl_hits.count();
        meta.permitted = 1;
    }

    table acl {
        key = {
            hdr.ipv4.src: ternary @name("source");
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: optional;
            hdr.ipv4.ttl: range;
            hdr.ipv4.isValid(): exact;
        }
        actions = { permit; drop; }
        default_action = permit();
        counters = acl_hits;
        size = 256;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; to_cpu; @tableonly drop; }
        const default_action = to_cpu;
        support_timeout = true;
        size = 65536;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            return;
        }
        ports.count((bit<32>)std.ingress_port);
        last_seen.write((bit<32>)std.ingress_port, std.ingress_global_timestamp);
        if (std.checksum_error == 1 || !hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
            exit;
        }
        acl.apply();
        if (meta.permitted == 1) {
            switch (routes.apply().action_run) {
                to_cpu: { meta.next_hop = 0; }
                forward: { meta.next_hop = hdr.ipv4.dst; }
            }
        }
    }
}

control RouterEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {}
}

control RouterUpdate(inout headers hdr, inout metadata meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_FIELDS(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(RouterParser(), RouterVerify(), RouterIngress(), RouterEgress(), RouterUpdate(),
         RouterDeparser()) main;
