// SPDX-License-Identifier: Apache-2.0
#ifdef WITHOUT_REMOTE_SERVERS
#define IS_IP_IN_IP false
#define IS_GENEVE false
#else
#define IS_IP_IN_IP (meta.protocol == PROTO_IPV4 || meta.protocol == PROTO_IPV6)
#define IS_GENEVE (hdr.udp.isValid() && hdr.ports.dst_port == GENEVE_PORT)
#endif

// Checks the outer headers, which may have neither options nor extension headers, and reads the length of the inner
// frame.
control OuterHeaders(in headers_t hdr, inout metadata_t meta) {
    apply {
        bit<16> payload;
        if (hdr.ipv4.isValid()) {
            payload = hdr.ipv4.total_length - 20;
        } else {
            payload = hdr.ipv6.payload_length;
        }
        if (meta.is_fragment == 1 || meta.extension_bytes != 0 || (hdr.ipv4.isValid() && hdr.ipv4.ihl != 5)) {
            meta.TUNNEL_VERDICT = DROP_TUNNEL_HEADER;
#ifndef WITHOUT_REMOTE_SERVERS
        } else if (meta.peer_is_server == 0 && (IS_IP_IN_IP || IS_GENEVE)) {
            meta.TUNNEL_VERDICT = DROP_TUNNEL_HEADER;
        } else if (IS_IP_IN_IP) {
            meta.inner_length = payload;
#endif
        } else if (hdr.udp.isValid()) {
            meta.inner_length = hdr.udp.length - 30; // without UDP, VXLAN or Geneve, and Ethernet
            if (hdr.udp.length < 30 || hdr.udp.length > payload) {
                meta.TUNNEL_VERDICT = DROP_TUNNEL_HEADER;
            }
        } else {
            meta.inner_length = payload - 8; // without GRE and its key
            if (payload < 8) {
                meta.TUNNEL_VERDICT = DROP_TUNNEL_HEADER;
            }
        }
    }
}

// Terminates tunnels over IPv4 or IPv6. Artemis' tunnels (docs/steering.md) are VXLAN (RFC 7348) and GRE (RFC 2784) with
// a key (RFC 2890), whose VNI or key is the site at which the client's packets enter. Those of remote servers
// (docs/remote-servers.md) are also Geneve (RFC 8926), GRE without a key, and IP in IP. A packet takes two passes:
//
// 1. The outer packet is to this switch's endpoint, from a known peer on the right side. It is resubmitted, and the
//    parser skips the outer headers.
// 2. The inner packet is a first flight or a response. A first flight comes from the site where the client's packets
//    enter; it is treated like any client's packet, but never steered again. A response comes from a host that serves
//    its source address; it goes to the client, or on to the site where the client's packets enter. A remote server's
//    packet is then treated like that of any server.
//
// A tunnel from a client's port to any known endpoint is dropped, because its sender could impersonate a site. Beyond
// that, the switch checks the side from which a peer sends, but cannot tell apart the hosts of one side.
//
// Tofino needs no first pass: a parser value set of local endpoints lets the parser skip the outer headers at once.
control Tunnel(inout headers_t hdr, inout metadata_t meta) {
    OuterHeaders() outer_headers;
    bit<1> at_endpoint;
    bit<1> at_local_endpoint;

    action local_endpoint() {
        at_endpoint = 1;
        at_local_endpoint = 1;
    }

    action remote_endpoint() {
        at_endpoint = 1;
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

    action set_peer(bit<8> site, bit<16> source_set) {
        meta.from_tunnel = 1;
        meta.peer_site = site;
        meta.peer_source_set = source_set;
    }

    action unknown_peer() {
        meta.TUNNEL_VERDICT = DROP_TUNNEL_PEER;
    }

#ifndef WITHOUT_REMOTE_SERVERS
    ServerTunnel() server_tunnel;

    action set_server_peer(bit<16> source_set) {
        meta.from_tunnel = 1;
        meta.peer_is_server = 1;
        meta.peer_source_set = source_set;
    }
#define PEER_ACTIONS set_peer; set_server_peer; unknown_peer;
#else
#define PEER_ACTIONS set_peer; unknown_peer;
#endif

    table peer4 {
        key = {
            hdr.ipv4.src: exact @name("src");
            meta.role: exact @name("role");
        }
        actions = { PEER_ACTIONS }
        const default_action = unknown_peer();
        size = TUNNEL_ENDPOINTS;
    }

    table peer6 {
        key = {
            hdr.ipv6.src: exact @name("src");
            meta.role: exact @name("role");
        }
        actions = { PEER_ACTIONS }
        const default_action = unknown_peer();
        size = TUNNEL_ENDPOINTS;
    }

    bit<32> tunnel_id;

    action accept_first_flight() {
        meta.origin_site = tunnel_id[7:0];
    }

    action deliver_response() {
        meta.direction = Direction.RESPONSE;
        meta.outcome = OUTCOME_RESPONSE_CLIENT;
    }

    action forward_response(bit<8> site) {
        meta.direction = Direction.RESPONSE;
        meta.outcome = OUTCOME_RESPONSE_SITE;
        meta.origin_site = site;
        meta.remote = Remote.SITE;
        meta.remote_id = (bit<16>)site;
    }

    action unknown_origin() {
        meta.TUNNEL_VERDICT = DROP_TUNNEL_ORIGIN;
    }

    // The packets that a peer may send. Another site's switch or dispatcher sends first flights that entered there and
    // responses to first flights that entered here. A host of this site sends responses.
    table origin {
        key = {
            meta.peer_site: exact @name("peer_site");
            tunnel_id: exact @name("tunnel_id");
        }
        actions = { accept_first_flight; deliver_response; forward_response; unknown_origin; }
        const default_action = unknown_origin();
        size = TUNNEL_ORIGINS;
    }

    action foreign_source() {
        meta.TUNNEL_VERDICT = DROP_TUNNEL_SOURCE;
    }

    // The service addresses and ports of each source set. Set 0 holds all services.
    table source4 {
        key = {
            meta.peer_source_set: exact @name("source_set");
            hdr.ipv4.src: exact @name("src");
            hdr.ports.src_port: exact @name("src_port");
        }
        actions = { NoAction; foreign_source; }
        const default_action = foreign_source();
        size = TUNNEL_SOURCES;
    }

    table source6 {
        key = {
            meta.peer_source_set: exact @name("source_set");
            hdr.ipv6.src: exact @name("src");
            hdr.ports.src_port: exact @name("src_port");
        }
        actions = { NoAction; foreign_source; }
        const default_action = foreign_source();
        size = TUNNEL_SOURCES;
    }

    action remove_outer() {
        hdr.outer_ipv4.setInvalid();
        hdr.outer_ipv6.setInvalid();
        hdr.outer_ports.setInvalid();
        hdr.outer_udp.setInvalid();
        hdr.vxlan.setInvalid();
        hdr.gre.setInvalid();
#ifndef WITHOUT_REMOTE_SERVERS
        hdr.gre_keyless.setInvalid();
        hdr.geneve.setInvalid();
#endif
        hdr.inner_ethernet.setInvalid();
    }

    apply {
        at_endpoint = 0;
        at_local_endpoint = 0;
        if (meta.is_fragment == 1 || meta.parse_failure == DROP_VIP_EXTENSION || meta.protocol == PROTO_GRE
            || (hdr.udp.isValid() && hdr.ports.dst_port == VXLAN_PORT) || IS_IP_IN_IP || IS_GENEVE) {
            if (hdr.ipv4.isValid()) {
                endpoint4.apply();
            } else {
                endpoint6.apply();
            }
        }

        if (meta.from_tunnel == 0) {
            if (at_endpoint == 1 && meta.role == ROLE_CLIENT) {
                meta.TUNNEL_VERDICT = DROP_TUNNEL_FORGED;
            } else if (at_local_endpoint == 1) {
                if (hdr.ipv4.isValid()) {
                    peer4.apply();
                } else {
                    peer6.apply();
                }
                if (meta.TUNNEL_VERDICT == VERDICT_CONTINUE) {
                    outer_headers.apply(hdr, meta);
                    if (meta.TUNNEL_VERDICT == VERDICT_CONTINUE) {
                        meta.TUNNEL_VERDICT = VERDICT_RESUBMIT;
                    }
                }
            }
        } else {
            tunnel_id = hdr.gre.key;
            if (hdr.vxlan.isValid()) {
                tunnel_id = 8w0 ++ hdr.vxlan.vni;
            }
#ifndef WITHOUT_REMOTE_SERVERS
            if (meta.peer_is_server == 1) {
                server_tunnel.apply(hdr, meta);
            } else {
                origin.apply();
            }
            remove_outer();
#else
            remove_outer();
            origin.apply();
#endif
            if (at_endpoint == 1) {
                meta.TUNNEL_VERDICT = DROP_TUNNEL_NESTED;
            } else if (meta.direction == Direction.RESPONSE) {
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
}
