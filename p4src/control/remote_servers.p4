// SPDX-License-Identifier: Apache-2.0
// Remote servers (docs/remote-servers.md): servers of a VIP that the switch reaches through a tunnel. Their packets come
// back through the same tunnel, or routed, as configured for each server.

// The VNI or key by which an endpoint of remote servers may send.
control ServerTunnel(in headers_t hdr, inout metadata_t meta) {
    Encapsulated encapsulation;
    bit<32> tunnel_id; // 0: the tunnel has none

    action unknown_tunnel() {
        meta.TUNNEL_VERDICT = DROP_TUNNEL_ORIGIN;
    }

    table tunnel {
        key = {
            meta.peer_source_set: exact @name("source_set");
            encapsulation: exact @name("encapsulation");
            tunnel_id: exact @name("tunnel_id");
        }
        actions = { NoAction; unknown_tunnel; }
        const default_action = unknown_tunnel();
        size = SERVER_TUNNELS;
    }

    apply {
        tunnel_id = 0;
        if (hdr.vxlan.isValid()) {
            encapsulation = Encapsulated.VXLAN;
            tunnel_id = 8w0 ++ hdr.vxlan.vni;
        } else if (hdr.geneve.isValid()) {
            encapsulation = Encapsulated.GENEVE;
            tunnel_id = 8w0 ++ hdr.geneve.vni;
        } else if (hdr.gre.isValid()) {
            encapsulation = Encapsulated.GRE;
            tunnel_id = hdr.gre.key;
        } else if (hdr.gre_keyless.isValid()) {
            encapsulation = Encapsulated.GRE_KEYLESS;
        } else {
            encapsulation = Encapsulated.IP;
        }
        tunnel.apply();
    }
}

// A packet in a tunnel of a remote server must come from a server behind that endpoint, and a server whose packets return
// in a tunnel may not send in any other way. Real servers send on its behalf by ports of their own (real_servers.p4).
control RemoteServers(inout metadata_t meta) {
    bit<16> expected_set; // 0: no tunnel
    bit<16> actual_set;

    action return_by_tunnel(bit<16> source_set, bit<16> max_mss) {
        expected_set = source_set;
        meta.max_mss = max_mss;
    }

    action return_routed(bit<16> max_mss) {
        meta.max_mss = max_mss;
    }

    table source {
        key = { meta.sid: exact @name("sid"); }
        actions = { return_by_tunnel; return_routed; NoAction; }
        const default_action = NoAction();
        size = SERVERS;
    }

    apply {
        if (meta.verdict == VERDICT_CONTINUE) {
            expected_set = 0;
            actual_set = 0;
            if (meta.peer_is_server == 1) {
                actual_set = meta.peer_source_set;
            }
            if (meta.direction == Direction.DOWN) {
                source.apply();
                if (expected_set != actual_set && meta.role != ROLE_REAL_SERVER) {
                    meta.verdict = DROP_REMOTE_SERVER_SOURCE;
                }
            } else if (meta.peer_is_server == 1) {
                meta.verdict = DROP_REMOTE_SERVER_SOURCE;
            }
        }
    }
}
