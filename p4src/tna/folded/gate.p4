// SPDX-License-Identifier: Apache-2.0
// The gate: the first pipe, with all front-panel ports. Its ingress terminates tunnels, as the first pass of control/tunnel.p4
// does. It leaves malformed packets to the checks of the edge.
#ifndef FRONTAGE_TNA_FOLDED_GATE_P4
#define FRONTAGE_TNA_FOLDED_GATE_P4

struct gate_metadata_t {
    bit<8> role;             // of the port
    bit<1> may_be_tunnel;    // the outer headers of a tunnel, or what conceals them
    bit<1> is_concealed;     // by fragmentation, options or extension headers
    bit<1> bad_ipv4_checksum;
    bit<1> is_malformed;     // the edge drops the packet for another reason
    bit<1> at_endpoint;
    bit<1> at_local_endpoint;
    bit<1> has_peer;
    bit<8> peer_site;
    bit<32> tunnel_id;
    bit<1> has_origin;
    bit<16> payload;         // bytes behind the outer IP header
    bit<16> missing_ipv4;    // bytes that a header needs, but the packet lacks
    bit<16> missing_udp;
    bit<16> missing_gre;
    bit<16> excess;          // bytes of the datagram beyond the end of the packet
    bit<8> verdict;
}

parser GateParser(packet_in packet, out headers_t hdr, out gate_metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    Checksum() ipv4_checksum;

    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.outer_ipv4);
        ipv4_checksum.add(hdr.outer_ipv4);
        meta.bad_ipv4_checksum = (bit<1>)ipv4_checksum.verify();
        transition select(hdr.outer_ipv4.ihl, hdr.outer_ipv4.more_fragments, hdr.outer_ipv4.fragment_offset, hdr.outer_ipv4.protocol) {
            (0 &&& 0xc, _, _, _): accept;
            (4, _, _, _): accept;
            (5, 0, 0, PROTO_UDP): udp;
            (5, 0, 0, PROTO_GRE): gre;
            (6, 0, 0, PROTO_UDP): option1_then_concealed_udp;
            (7, 0, 0, PROTO_UDP): option2_then_concealed_udp;
            (8, 0, 0, PROTO_UDP): option3_then_concealed_udp;
            (9, 0, 0, PROTO_UDP): option4_then_concealed_udp;
            (10, 0, 0, PROTO_UDP): option5_then_concealed_udp;
            (11, 0, 0, PROTO_UDP): option6_then_concealed_udp;
            (12, 0, 0, PROTO_UDP): option7_then_concealed_udp;
            (13, 0, 0, PROTO_UDP): option8_then_concealed_udp;
            (14, 0, 0, PROTO_UDP): option9_then_concealed_udp;
            (15, 0, 0, PROTO_UDP): option10_then_concealed_udp;
            (_, 0, 0, PROTO_GRE): concealed;
            (_, 0, 0, _): accept;
            default: concealed;
        }
    }

    IPV4_OPTIONS_THEN(concealed_udp)

    state ipv6 {
        packet.extract(hdr.outer_ipv6);
        transition select(hdr.outer_ipv6.next_header) {
            PROTO_UDP: udp;
            PROTO_GRE: gre;
            PROTO_FRAGMENT: concealed;
            PROTO_HOPOPT: ipv6_extension0;
            PROTO_ROUTING: ipv6_extension0;
            PROTO_DSTOPT: ipv6_extension0;
            default: accept;
        }
    }

    state ipv6_extension0 {
        packet.extract(hdr.ipv6_extensions[0]);
        transition select(hdr.ipv6_extensions[0].next_header, hdr.ipv6_extensions[0].length) {
            (PROTO_HOPOPT, 0): ipv6_extension1;
            (PROTO_ROUTING, 0): ipv6_extension1;
            (PROTO_DSTOPT, 0): ipv6_extension1;
            (PROTO_UDP, 0): concealed_udp;
            (PROTO_GRE, 0): concealed;
            (PROTO_FRAGMENT, 0): concealed;
            (_, 0): accept;
            default: concealed;
        }
    }

    state ipv6_extension1 {
        packet.extract(hdr.ipv6_extensions[1]);
        transition select(hdr.ipv6_extensions[1].next_header, hdr.ipv6_extensions[1].length) {
            (PROTO_HOPOPT, 0): concealed;
            (PROTO_ROUTING, 0): concealed;
            (PROTO_DSTOPT, 0): concealed;
            (PROTO_UDP, 0): concealed_udp;
            (PROTO_GRE, 0): concealed;
            (PROTO_FRAGMENT, 0): concealed;
            (_, 0): accept;
            default: concealed;
        }
    }

    state concealed_udp {
        packet.extract(hdr.ports);
        transition select(hdr.ports.dst_port) {
            VXLAN_PORT: concealed;
            default: accept;
        }
    }

    state concealed {
        meta.may_be_tunnel = 1;
        meta.is_concealed = 1;
        transition accept;
    }

    state udp {
        packet.extract(hdr.outer_ports);
        packet.extract(hdr.outer_udp);
        transition select(hdr.outer_ports.dst_port) {
            VXLAN_PORT: vxlan;
            default: accept;
        }
    }

    state vxlan {
        meta.may_be_tunnel = 1;
        packet.extract(hdr.vxlan);
        packet.extract(hdr.inner_ethernet);
        transition accept;
    }

    state gre {
        meta.may_be_tunnel = 1;
        packet.extract(hdr.gre);
        transition accept;
    }
}

// The sides and addresses of tunnels: who sent the packet, and for which site.
control Gate(inout headers_t hdr, inout gate_metadata_t meta, in port_t ingress_port) {
    action set_role(bit<8> role) {
        meta.role = role;
    }

    // Role of the ingress port, as in control/ports.p4.
    table port {
        key = { ingress_port: exact @name("ingress_port"); }
        actions = { set_role; NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    action malformed() {
        meta.is_malformed = 1;
    }

    @hidden table outer {
        key = {
            hdr.outer_ipv4.isValid(): ternary;
            hdr.outer_ipv4.version: ternary;
            hdr.outer_ipv4.ihl: ternary;
            hdr.outer_ipv4.src[31:24]: ternary;
            meta.bad_ipv4_checksum: ternary;
            meta.missing_ipv4: ternary;
            hdr.outer_ipv6.version: ternary;
            hdr.outer_ipv6.src: ternary;
        }
        actions = { malformed; NoAction; }
        const entries = {
            (true, 4, 5, _, 1, _, _, _): malformed();
            (true, 4, _, 0, _, 0, _, _): malformed();
            (true, 4, _, 127, _, 0, _, _): malformed();
            (true, 4, _, 0xe0 &&& 0xe0, _, 0, _, _): malformed();
            (true, 4, _, _, _, 0, _, _): NoAction();
            (true, _, _, _, _, _, _, _): malformed();
            (_, _, _, _, _, _, 6, 0 &&& 0xfffffffffffffffffffffffffffffffe): malformed(); // :: and ::1
            (_, _, _, _, _, _, 6, 0xff000000000000000000000000000000 &&& 0xff000000000000000000000000000000): malformed();
            (_, _, _, _, _, _, 6, _): NoAction();
        }
        const default_action = malformed();
        size = 16;
    }

    action local_endpoint() {
        meta.at_endpoint = 1;
        meta.at_local_endpoint = 1;
    }

    action remote_endpoint() {
        meta.at_endpoint = 1;
    }

    table endpoint4 {
        key = { hdr.outer_ipv4.dst: exact @name("dst"); }
        actions = { local_endpoint; remote_endpoint; NoAction; }
        const default_action = NoAction();
        size = TUNNEL_ENDPOINTS;
    }

    table endpoint6 {
        key = { hdr.outer_ipv6.dst: exact @name("dst"); }
        actions = { local_endpoint; remote_endpoint; NoAction; }
        const default_action = NoAction();
        size = TUNNEL_ENDPOINTS;
    }

    action set_peer(bit<8> site, bit<16> source_set) {
        meta.has_peer = 1;
        meta.peer_site = site;
        hdr.tunnel.source_set = source_set;
    }

    action unknown_peer() {}

    table peer4 {
        key = {
            hdr.outer_ipv4.src: exact @name("src");
            meta.role: exact @name("role");
        }
        actions = { set_peer; unknown_peer; }
        const default_action = unknown_peer();
        size = TUNNEL_ENDPOINTS;
    }

    table peer6 {
        key = {
            hdr.outer_ipv6.src: exact @name("src");
            meta.role: exact @name("role");
        }
        actions = { set_peer; unknown_peer; }
        const default_action = unknown_peer();
        size = TUNNEL_ENDPOINTS;
    }

    action read_vni() {
        IN_HASH { meta.tunnel_id = 8w0 ++ hdr.vxlan.vni; }
    }

    action read_key() {
        meta.tunnel_id = hdr.gre.key;
    }

    action accept_first_flight() {
        IN_HASH { hdr.gate.origin_site = meta.tunnel_id[7:0]; }
    }

    action deliver_response() {
        hdr.gate.is_response = 1;
    }

    action forward_response(bit<8> site) {
        hdr.gate.is_response = 1;
        hdr.gate.to_site = 1;
        hdr.gate.origin_site = site;
    }

    action unknown_origin() {
        meta.has_origin = 0;
    }

    table origin {
        key = {
            meta.peer_site: exact @name("peer_site");
            meta.tunnel_id: exact @name("tunnel_id");
        }
        actions = { accept_first_flight; deliver_response; forward_response; unknown_origin; }
        const default_action = unknown_origin();
        size = TUNNEL_ORIGINS;
    }

    action read_ipv4_length() {
        meta.missing_ipv4 = 20 |-| hdr.outer_ipv4.total_length;
        meta.payload = hdr.outer_ipv4.total_length - 20;
    }

    action read_ipv6_length() {
        meta.payload = hdr.outer_ipv6.payload_length;
    }

    action read_udp_length() {
        hdr.tunnel.inner_length = hdr.outer_udp.length - 30; // without UDP, VXLAN and Ethernet
        meta.missing_udp = 30 |-| hdr.outer_udp.length;
        meta.excess = hdr.outer_udp.length |-| meta.payload;
    }

    action read_gre_length() {
        hdr.tunnel.inner_length = meta.payload - 8; // without GRE and its key
        meta.missing_gre = 8 |-| meta.payload;
    }

    apply {
        port.apply();
        if (hdr.outer_ipv4.isValid()) {
            read_ipv4_length();
        } else {
            read_ipv6_length();
        }
        if (hdr.vxlan.isValid()) {
            read_vni();
            read_udp_length();
        } else {
            read_key();
            read_gre_length();
        }
        outer.apply();
        if (meta.may_be_tunnel == 1) {
            if (hdr.outer_ipv4.isValid()) {
                endpoint4.apply();
                peer4.apply();
            } else {
                endpoint6.apply();
                peer6.apply();
            }
            meta.has_origin = 1;
            if (meta.at_local_endpoint == 1) {
                origin.apply();
            }
        }
    }
}

// Removes the outer headers, drops the packet, or leaves it as it is.
control Termination(inout headers_t hdr, inout gate_metadata_t meta) {
    action remove_outer() {
        hdr.gate.from_tunnel = 1;
        hdr.outer_ipv4.setInvalid();
        hdr.outer_ipv6.setInvalid();
        hdr.outer_ports.setInvalid();
        hdr.outer_udp.setInvalid();
        hdr.vxlan.setInvalid();
        hdr.gre.setInvalid();
        hdr.inner_ethernet.setInvalid();
    }

    action terminate_vxlan() {
        hdr.ethernet.ether_type = hdr.inner_ethernet.ether_type;
        remove_outer();
    }

    action terminate_gre() {
        hdr.ethernet.ether_type = hdr.gre.protocol;
        remove_outer();
    }

    action drop(bit<8> reason) {
        meta.verdict = reason;
    }

    // Packets that the edge drops, or that are not for this switch, are not from a tunnel.
    action leave() {
        hdr.gate.is_response = 0;
        hdr.gate.to_site = 0;
        hdr.gate.origin_site = 0;
        hdr.tunnel.setInvalid();
    }

    @hidden table termination {
        key = {
            meta.is_malformed: ternary;
            meta.role: ternary;
            meta.at_endpoint: ternary;
            meta.at_local_endpoint: ternary;
            meta.has_peer: ternary;
            meta.is_concealed: ternary;
            meta.missing_udp: ternary;
            meta.excess: ternary;
            meta.missing_gre: ternary;
            meta.has_origin: ternary;
            hdr.vxlan.isValid(): ternary;
            hdr.vxlan.flags: ternary;
            hdr.inner_ethernet.isValid(): ternary;
            hdr.inner_ethernet.ether_type: ternary;
            hdr.gre.isValid(): ternary;
            hdr.gre.flags: ternary;
            hdr.gre.protocol: ternary;
        }
        actions = { terminate_vxlan; terminate_gre; drop; leave; }
        const entries = {
            (1, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _): leave();
            (_, 0, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _): leave();
            (_, ROLE_CLIENT, 1, _, _, _, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_TUNNEL_FORGED);
            (_, _, _, 0, _, _, _, _, _, _, _, _, _, _, _, _, _): leave();
            (_, _, _, _, 0, _, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_TUNNEL_PEER);
            (_, _, _, _, _, 1, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_TUNNEL_HEADER);
            (_, _, _, _, _, _, 0, 0, _, _, true, VXLAN_HAS_VNI &&& VXLAN_HAS_VNI, true, ETHERTYPE_ARP, _, _, _): drop(DROP_TUNNEL_INNER);
            (_, _, _, _, _, _, 0, 0, _, 1, true, VXLAN_HAS_VNI &&& VXLAN_HAS_VNI, true, _, _, _, _): terminate_vxlan();
            (_, _, _, _, _, _, 0, 0, _, 0, true, VXLAN_HAS_VNI &&& VXLAN_HAS_VNI, true, _, _, _, _): drop(DROP_TUNNEL_ORIGIN);
            (_, _, _, _, _, _, _, _, 0, _, _, _, _, _, true, GRE_HAS_KEY, ETHERTYPE_ARP): drop(DROP_TUNNEL_INNER);
            (_, _, _, _, _, _, _, _, 0, 1, _, _, _, _, true, GRE_HAS_KEY, _): terminate_gre();
            (_, _, _, _, _, _, _, _, 0, 0, _, _, _, _, true, GRE_HAS_KEY, _): drop(DROP_TUNNEL_ORIGIN);
        }
        const default_action = drop(DROP_TUNNEL_HEADER);
        size = 16;
    }

    apply {
        termination.apply();
    }
}

control GateIngress(inout headers_t hdr, inout gate_metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
                    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) gate_drops;

    @name("tunnel") Gate() gate;
    @name("tunnel") Termination() termination;

    action enter() {
        hdr.gate.setValid();
        hdr.gate.kind = INTERNAL_GATE;
        hdr.gate.reserved = 0;
        hdr.gate.from_tunnel = 0;
        hdr.gate.is_response = 0;
        hdr.gate.to_site = 0;
        hdr.gate.ingress_port = ig_intr_md.ingress_port;
        hdr.gate.origin_site = 0;
        hdr.tunnel.setValid();
        hdr.tunnel.source_set = 0;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port | EDGE_PORT;
    }

    apply {
        enter();
        gate.apply(hdr, meta, ig_intr_md.ingress_port);
        // Without the error as a condition, the chip would drop packets that the parser finds too short.
        if (ig_prsr_md.parser_err != 0) {
            hdr.tunnel.inner_length = 0;
        }
        termination.apply(hdr, meta);
        if (meta.verdict != VERDICT_CONTINUE) {
            gate_drops.count(meta.verdict);
            ig_dprsr_md.drop_ctl = 1;
        }
    }
}

control GateIngressDeparser(packet_out packet, inout headers_t hdr, in gate_metadata_t meta,
                            in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply {
        packet.emit(hdr);
    }
}

#endif
