// SPDX-License-Identifier: Apache-2.0
// Limits on what clients send to a VIP (docs/limits.md): new connections per second and bytes per second, for all
// clients of the VIP and for client prefixes. A packet above a limit is dropped. It uses the limits of its client
// prefix first, so that one prefix cannot use up the limit of the VIP.
//
// A new connection is a SYN, or a datagram that may hold an Initial (RFC 9000, 14.1) and has a connection id that the
// client chose. Packets from other sites were limited there.
control Limits(in headers_t hdr, inout metadata_t meta) {
    LimitCounter() refusals;
    bit<8> color; // of the meter; zero: green, which is within the limit

    DIRECT_METER(client_connections4, METER_PACKETS)
    DIRECT_METER(client_connections6, METER_PACKETS)
    DIRECT_METER(client_bytes4, METER_BYTES)
    DIRECT_METER(client_bytes6, METER_BYTES)
    DIRECT_METER(vip_connections, METER_PACKETS)
    DIRECT_METER(vip_bytes, METER_BYTES)

    action limit_client_connections4() {
        READ_METER(client_connections4, color)
    }

    table connections_by_client4 {
        key = {
            meta.vip_id: exact @name("vip_id");
            hdr.ipv4.src: lpm @name("src");
        }
        actions = { limit_client_connections4; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = client_connections4;
        size = LIMITED_PREFIXES;
    }

    action limit_client_connections6() {
        READ_METER(client_connections6, color)
    }

    table connections_by_client6 {
        key = {
            meta.vip_id: exact @name("vip_id");
            hdr.ipv6.src: lpm @name("src");
        }
        actions = { limit_client_connections6; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = client_connections6;
        size = LIMITED_PREFIXES;
    }

    action limit_vip_connections() {
        READ_METER(vip_connections, color)
    }

    table connections {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { limit_vip_connections; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = vip_connections;
        size = VIPS;
    }

    action limit_client_bytes4() {
        READ_METER(client_bytes4, color)
    }

    table bytes_by_client4 {
        key = {
            meta.vip_id: exact @name("vip_id");
            hdr.ipv4.src: lpm @name("src");
        }
        actions = { limit_client_bytes4; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = client_bytes4;
        size = LIMITED_PREFIXES;
    }

    action limit_client_bytes6() {
        READ_METER(client_bytes6, color)
    }

    table bytes_by_client6 {
        key = {
            meta.vip_id: exact @name("vip_id");
            hdr.ipv6.src: lpm @name("src");
        }
        actions = { limit_client_bytes6; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = client_bytes6;
        size = LIMITED_PREFIXES;
    }

    action limit_vip_bytes() {
        READ_METER(vip_bytes, color)
    }

    table bytes {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { limit_vip_bytes; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = vip_bytes;
        size = VIPS;
    }

    apply {
        if (meta.direction == Direction.UP && meta.from_tunnel == 0 && meta.is_refused == 0) {
            bit<2> kind = 0; // of the limit, in the order of the reasons to drop
            color = 0;
            if (meta.is_first_flight == 1
                && (hdr.tcp.isValid() || (meta.quic_cookie.kind == QuicCookie.NONE && meta.may_hold_initial == 1))) {
                if (hdr.ipv4.isValid()) {
                    connections_by_client4.apply();
                } else {
                    connections_by_client6.apply();
                }
                if (color != 0) {
                    kind = LIMIT_CLIENT_CONNECTIONS;
                    meta.verdict = DROP_LIMIT_CLIENT_CONNECTIONS;
                } else {
                    connections.apply();
                    if (color != 0) {
                        kind = LIMIT_CONNECTIONS;
                        meta.verdict = DROP_LIMIT_CONNECTIONS;
                    }
                }
            }
            if (meta.verdict == VERDICT_CONTINUE) {
                if (hdr.ipv4.isValid()) {
                    bytes_by_client4.apply();
                } else {
                    bytes_by_client6.apply();
                }
                if (color != 0) {
                    kind = LIMIT_CLIENT_BANDWIDTH;
                    meta.verdict = DROP_LIMIT_CLIENT_BANDWIDTH;
                } else {
                    bytes.apply();
                    if (color != 0) {
                        kind = LIMIT_BANDWIDTH;
                        meta.verdict = DROP_LIMIT_BANDWIDTH;
                    }
                }
            }
            if (meta.verdict != VERDICT_CONTINUE) {
                refusals.apply(meta.vip_id, kind);
            }
        }
    }
}
