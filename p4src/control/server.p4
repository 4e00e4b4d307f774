// SPDX-License-Identifier: Apache-2.0
// Reacting phase towards the server (CloudCookie, IV.B): rewrites the destination from the VIP or a cookie address to
// the DIP. A packet to a remote server then leaves in a tunnel. A datagram that entered at another site goes to the
// replica in a tunnel, unchanged, so that the response can return through that site.
control Server(inout headers_t hdr, inout metadata_t meta) {
#ifdef FOUR_PIPES
    ToReplica() to_replica;
#endif
    DIRECT_COUNTER(up4)

    action to_server4(ipv4_t dip, bit<16> port) {
        COUNT(up4)
        hdr.ipv4.dst = dip;
        hdr.ports.dst_port = port;
    }

    DIRECT_COUNTER(up6)

    action to_server6(ipv6_t dip, bit<16> port) {
        COUNT(up6)
        hdr.ipv6.dst = dip;
        hdr.ports.dst_port = port;
    }

#ifndef WITHOUT_REMOTE_SERVERS
    // A remote server: `max_mss` is what the tunnel leaves for a segment.
    action use_tunnel(bit<16> max_mss) {
        meta.remote = Remote.SERVER;
        meta.remote_id = meta.sid;
        meta.max_mss = max_mss;
    }

    action to_remote_server4(ipv4_t dip, bit<16> port, bit<16> max_mss) {
        to_server4(dip, port);
        use_tunnel(max_mss);
    }

    action to_remote_server6(ipv6_t dip, bit<16> port, bit<16> max_mss) {
        to_server6(dip, port);
        use_tunnel(max_mss);
    }
#define TO_SERVER4_ACTIONS to_server4; to_remote_server4;
#define TO_SERVER6_ACTIONS to_server6; to_remote_server6;
#else
#define TO_SERVER4_ACTIONS to_server4;
#define TO_SERVER6_ACTIONS to_server6;
#endif

    action server_gone() {
        meta.verdict = DROP_SERVER_GONE;
    }

    table server4 {
        key = { meta.sid: exact @name("sid"); }
        actions = { TO_SERVER4_ACTIONS @defaultonly server_gone; }
        const default_action = server_gone();
        counters = up4;
        size = SERVERS;
    }

    table server6 {
        key = { meta.sid: exact @name("sid"); }
        actions = { TO_SERVER6_ACTIONS @defaultonly server_gone; }
        const default_action = server_gone();
        counters = up6;
        size = SERVERS;
    }

    apply {
#ifdef FOUR_PIPES
        if (hdr.gate.from_tunnel == 1 && hdr.udp.isValid()) {
            to_replica.apply(hdr, meta);
        } else
#elif !defined(WITHOUT_STEERING)
        if (meta.from_tunnel == 1 && !IS_FROM_SERVER_TUNNEL && hdr.udp.isValid()) {
            meta.remote = Remote.REPLICA;
            meta.remote_id = meta.sid;
        } else
#endif
        if (hdr.ipv4.isValid()) {
            server4.apply();
        } else {
            server6.apply();
        }
    }
}

// A client that sends to a cookie address reaches the server at the same interface id, in the server's /64. Forwarding
// has chosen the route to the server's own address.
control CookieAddress(inout headers_t hdr, in metadata_t meta) {
    apply {
        if (meta.direction == Direction.UP && meta.at_cookie_address == 1) {
            hdr.ipv6.dst[63:0] = meta.cookie_word;
        }
    }
}
