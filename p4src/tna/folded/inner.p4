// SPDX-License-Identifier: Apache-2.0
// The egress of the edge, before its ingress: checks packets from tunnels, as the second pass of control/tunnel.p4 does.
#ifndef FRONTAGE_TNA_FOLDED_INNER_P4
#define FRONTAGE_TNA_FOLDED_INNER_P4

struct inner_metadata_t {
    bit<1> at_endpoint;
    bit<1> is_foreign;
    bit<1> may_be_tunnel; // another tunnel in the tunnel
    bit<1> has_ports;     // of TCP or UDP, or a fragment, which the edge drops
    bit<16> length;       // of the packet, from IP on
    bit<16> excess;       // bytes of the packet beyond what the outer headers leave for it
    bit<8> verdict;
}

parser InnerParser(packet_in packet, out headers_t hdr, out inner_metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.gate);
        transition select(hdr.gate.from_tunnel) {
            1: tunnel;
            default: accept;
        }
    }

    state tunnel {
        packet.extract(hdr.tunnel);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, 0, PROTO_UDP): udp;
            (_, 0, 0, PROTO_UDP): ports_behind_options;
            (_, 0, 0, PROTO_TCP): ports_behind_options;
            (_, 0, 0, PROTO_GRE): nested;
            (_, 0, 0, _): accept;
            default: nested;
        }
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            PROTO_UDP: udp;
            PROTO_TCP: ports_behind_options;
            PROTO_HOPOPT: ports_behind_options;
            PROTO_ROUTING: ports_behind_options;
            PROTO_DSTOPT: ports_behind_options;
            PROTO_FRAGMENT: nested;
            PROTO_GRE: nested;
            default: accept;
        }
    }

    state ports_behind_options {
        meta.has_ports = 1;
        transition accept;
    }

    state nested {
        meta.has_ports = 1;
        meta.may_be_tunnel = 1;
        transition accept;
    }

    state udp {
        meta.has_ports = 1;
        packet.extract(hdr.ports);
        packet.extract(hdr.udp);
        transition select(hdr.ports.dst_port) {
            VXLAN_PORT: nested;
            default: accept;
        }
    }
}

control InnerAddresses(in headers_t hdr, inout inner_metadata_t meta) {
    action local_endpoint() {
        meta.at_endpoint = 1;
    }

    action remote_endpoint() {
        meta.at_endpoint = 1;
    }

    table endpoint4 {
        key = { hdr.ipv4.dst: exact @name("dst"); }
        actions = { local_endpoint; remote_endpoint; NoAction; }
        const default_action = NoAction();
        size = TUNNEL_ENDPOINTS;
    }

    table endpoint6 {
        key = { hdr.ipv6.dst: exact @name("dst"); }
        actions = { local_endpoint; remote_endpoint; NoAction; }
        const default_action = NoAction();
        size = TUNNEL_ENDPOINTS;
    }

    apply {
        if (meta.may_be_tunnel == 1) {
            if (hdr.ipv4.isValid()) {
                endpoint4.apply();
            } else if (hdr.ipv6.isValid()) {
                endpoint6.apply();
            }
        }
    }
}

// The service addresses and ports of each source set. Set 0 holds all services.
control InnerSources(in headers_t hdr, inout inner_metadata_t meta) {
    action foreign_source() {
        meta.is_foreign = 1;
    }

    table source4 {
        key = {
            hdr.tunnel.source_set: exact @name("source_set");
            hdr.ipv4.src: exact @name("src");
            hdr.ports.src_port: exact @name("src_port");
        }
        actions = { NoAction; foreign_source; }
        const default_action = foreign_source();
        size = TUNNEL_SOURCES;
    }

    table source6 {
        key = {
            hdr.tunnel.source_set: exact @name("source_set");
            hdr.ipv6.src: exact @name("src");
            hdr.ports.src_port: exact @name("src_port");
        }
        actions = { NoAction; foreign_source; }
        const default_action = foreign_source();
        size = TUNNEL_SOURCES;
    }

    apply {
        if (hdr.gate.is_response == 1) {
            if (!hdr.udp.isValid()) {
                foreign_source();
            } else if (hdr.ipv4.isValid()) {
                source4.apply();
            } else {
                source6.apply();
            }
        }
    }
}

control InnerEgress(inout headers_t hdr, inout inner_metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
                    in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                    inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                    inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) inner_drops;

    @name("nested") InnerAddresses() addresses;
    @name("tunnel") InnerSources() sources;

    action read_ipv4_length() {
        meta.length = hdr.ipv4.total_length;
    }

    action read_ipv6_length() {
        meta.length = hdr.ipv6.payload_length + 40;
    }

    action compare_lengths() {
        meta.excess = meta.length |-| hdr.tunnel.inner_length;
    }

    action drop(bit<8> reason) {
        meta.verdict = reason;
        eg_dprsr_md.drop_ctl = 1;
    }

    // Without ports, it is neither a first flight nor a response. The edge would answer a ping.
    @hidden table verdict {
        key = {
            hdr.gate.from_tunnel: ternary;
            meta.at_endpoint: ternary;
            meta.is_foreign: ternary;
            meta.has_ports: ternary;
            meta.excess: ternary;
            hdr.ipv4.isValid(): ternary;
            hdr.ipv6.isValid(): ternary;
        }
        actions = { drop; NoAction; }
        const entries = {
            (0, _, _, _, _, _, _): NoAction();
            (_, _, _, _, _, false, false): NoAction(); // the edge drops it
            (_, 1, _, _, 0, _, _): drop(DROP_TUNNEL_NESTED);
            (_, _, 1, _, 0, _, _): drop(DROP_TUNNEL_SOURCE);
            (_, _, _, 0, 0, _, _): drop(DROP_TUNNEL_INNER);
            (_, _, _, _, 0, _, _): NoAction();
            (_, _, _, _, _, true, _): drop(DROP_IPV4_HEADER);
            (_, _, _, _, _, _, true): drop(DROP_IPV6_HEADER);
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            read_ipv4_length();
        } else {
            read_ipv6_length();
        }
        if (hdr.gate.from_tunnel == 1) {
            compare_lengths();
        }
        addresses.apply(hdr, meta);
        sources.apply(hdr, meta);
        verdict.apply();
        if (meta.verdict != VERDICT_CONTINUE) {
            inner_drops.count(meta.verdict, GATE_BYTES + 4);
        }
        hdr.tunnel.setInvalid();
    }
}

control InnerDeparser(packet_out packet, inout headers_t hdr, in inner_metadata_t meta,
                      in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
        packet.emit(hdr);
    }
}

#endif
