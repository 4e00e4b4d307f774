// The outer headers must be the shortest ones, whole, and say how long what they carry is.
control Outer(in headers_t hdr, inout metadata_t meta) {
    apply {
        bit<16> payload;
        if (hdr.ipv4.isValid()) {
            payload = hdr.ipv4.total_length - 20;
        } else {
            payload = hdr.ipv6.payload_length;
        }
        if (meta.fragment == 1 || meta.extension_units != 0 || (hdr.ipv4.isValid() && hdr.ipv4.ihl != 5)) {
            meta.drop = DROP_TUNNEL_HEADER;
        } else if (hdr.udp.isValid()) {
            meta.frame_length = hdr.udp.length - 16; // behind UDP and VXLAN
            if (hdr.udp.length < 30 || hdr.udp.length > payload) {
                meta.drop = DROP_TUNNEL_HEADER;
            }
        } else {
            meta.frame_length = payload + 6; // behind GRE, as if Ethernet were before it
            if (payload < 8) {
                meta.drop = DROP_TUNNEL_HEADER;
            }
        }
    }
}

// The end of Artemis' tunnels (docs/steering.md): VXLAN (RFC 7348) and GRE (RFC 2784) with a key (RFC 2890), over IPv4 or IPv6. A tunnel's id, VNI or key, is
// the site at which the client of what it carries comes in. Two passes:
//
//   1. a packet to this switch's own end, from a peer on the side where that belongs -> resubmitted, and the parser passes over the outer headers
//   2. what was in it is the packet:  first flight, from the site where it came in  -> as any client's packet, but never steered again
//                                     answer, from whom that service address is     -> to the client, or on to the site where that came in
//
// From a client's port no tunnel reaches any end that we know, here or behind us: a forger would speak for a site. Other sides are told apart, not their hosts.
//
// On Tofino the first pass is none: a parser value set of the own ends lets the parser pass over the outer headers at once.
control Tunnel(inout headers_t hdr, inout metadata_t meta) {
    Outer() outer;
    bit<1> at_end;
    bit<1> at_own_end;

    action local_endpoint() {
        at_end = 1;
        at_own_end = 1;
    }

    action remote_endpoint() {
        at_end = 1;
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
        meta.tunnelled = 1;
        meta.peer_site = site;
        meta.peer_sources = source_set;
    }

    action unknown_peer() {
        meta.drop = DROP_TUNNEL_PEER;
    }

    table peer4 {
        key = {
            hdr.ipv4.src: exact @name("src");
            meta.role: exact @name("role");
        }
        actions = { set_peer; unknown_peer; }
        const default_action = unknown_peer();
        size = TUNNEL_ENDPOINTS;
    }

    table peer6 {
        key = {
            hdr.ipv6.src: exact @name("src");
            meta.role: exact @name("role");
        }
        actions = { set_peer; unknown_peer; }
        const default_action = unknown_peer();
        size = TUNNEL_ENDPOINTS;
    }

    bit<32> tunnel_id;

    action accept_first_flight() {
        meta.origin = tunnel_id[7:0];
    }

    action deliver_response() {
        meta.direction = Direction.RESPONSE;
        meta.outcome = OUTCOME_RESPONSE_CLIENT;
    }

    action forward_response(bit<8> site) {
        meta.direction = Direction.RESPONSE;
        meta.outcome = OUTCOME_RESPONSE_SITE;
        meta.origin = site;
        meta.remote = Remote.SITE;
        meta.remote_number = (bit<16>)site;
    }

    action unknown_origin() {
        meta.drop = DROP_TUNNEL_ORIGIN;
    }

    // What a peer may bring: a site's switch or dispatcher first flights that came in there, and answers to what came in here; a host of our own answers.
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
        meta.drop = DROP_TUNNEL_SOURCE;
    }

    // Service addresses and ports, of all services for those who may answer for any.
    table source4 {
        key = {
            meta.peer_sources: exact @name("source_set");
            hdr.ipv4.src: exact @name("src");
            hdr.ports.src_port: exact @name("src_port");
        }
        actions = { NoAction; foreign_source; }
        const default_action = foreign_source();
        size = TUNNEL_SOURCES;
    }

    table source6 {
        key = {
            meta.peer_sources: exact @name("source_set");
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
        hdr.inner_ethernet.setInvalid();
    }

    apply {
        at_end = 0;
        at_own_end = 0;
        if (meta.fragment == 1 || meta.unparsed == DROP_VIP_EXTENSION || meta.protocol == PROTO_GRE
            || (hdr.udp.isValid() && hdr.ports.dst_port == VXLAN_PORT)) {
            if (hdr.ipv4.isValid()) {
                endpoint4.apply();
            } else {
                endpoint6.apply();
            }
        }

        if (meta.tunnelled == 0) {
            if (at_end == 1 && meta.role == ROLE_CLIENT) {
                meta.drop = DROP_TUNNEL_FORGED;
            } else if (at_own_end == 1) {
                if (hdr.ipv4.isValid()) {
                    peer4.apply();
                } else {
                    peer6.apply();
                }
                if (meta.drop == DROP_NONE) {
                    outer.apply(hdr, meta);
                    meta.again = 1;
                }
            }
        } else {
            tunnel_id = hdr.gre.key;
            if (hdr.vxlan.isValid()) {
                tunnel_id = 8w0 ++ hdr.vxlan.vni;
            }
            remove_outer();
            origin.apply();
            if (at_end == 1) {
                meta.drop = DROP_TUNNEL_NESTED;
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
