// SPDX-License-Identifier: Apache-2.0
/* Types that the controller sees otherwise, everywhere that P4Runtime can see them. */
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@p4runtime_translation("ports", 32)
type bit<9> port_t;
@p4runtime_translation("", string)
type bit<16> hop_t;
type bit<12> vlan_t;

@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port;
    bit<7> pad;
    hop_t hop;
}

@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
}

struct meta_t {
    port_t port;
    hop_t hop;
    vlan_t vlan;
}

struct seen_t {
    bit<48> address;
    port_t port;
    hop_t hop;
}

parser TranslatedParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        meta.port = (port_t)std.ingress_port;
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
        transition accept;
    }
}

control TranslatedVerify(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control TranslatedIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<hop_t>(4) last;

    action set_hop(hop_t hop) {
        meta.hop = hop;
    }
    action forward(port_t port) {
        std.egress_spec = (bit<9>)port;
    }
    action learn() {
        digest<seen_t>(1, { hdr.ethernet.src, meta.port, meta.hop });
    }

    table routes {
        key = {
            hdr.ethernet.dst: exact;
            meta.port: ternary;
        }
        actions = { set_hop; NoAction; }
        default_action = NoAction();
    }

    table hops {
        key = { meta.hop: exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
    }

    table sources {
        key = {
            meta.hop: optional;
            meta.port: range;
            meta.vlan: exact;
        }
        actions = { learn; NoAction; }
        default_action = NoAction();
    }

    table ports {
        key = { meta.port: lpm; }
        actions = { NoAction; }
        default_action = NoAction();
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = (bit<9>)hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        ports.apply();
        routes.apply();
        last.write(0, meta.hop);
        sources.apply();
        hops.apply();
    }
}

control TranslatedEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = meta.port;
            hdr.packet_in.hop = meta.hop;
        }
    }
}

control TranslatedCompute(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control TranslatedDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(TranslatedParser(), TranslatedVerify(), TranslatedIngress(), TranslatedEgress(), TranslatedCompute(), TranslatedDeparser()) main;
