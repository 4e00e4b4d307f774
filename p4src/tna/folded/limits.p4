// SPDX-License-Identifier: Apache-2.0
// Limits on client traffic, as in control/limits.p4. Each meter has its own colour field, so that only the last table waits for
// all of them.
#ifndef FRONTAGE_TNA_FOLDED_LIMITS_P4
#define FRONTAGE_TNA_FOLDED_LIMITS_P4

// Packets that the limits concern.
control Openings(in headers_t hdr, inout metadata_t meta) {
    action limit() {
        meta.is_limited = 1;
    }

    // It begins a connection, unless the cookie of QUIC names a server.
    action limit_opening() {
        meta.is_limited = 1;
        meta.may_open = 1;
    }

    @hidden table opening {
        key = {
            meta.direction: ternary;
            meta.verdict: ternary;
            meta.is_check: ternary;
            meta.at_cookie_address: ternary;
            hdr.tcp.isValid(): ternary;
            hdr.tcp.flags: ternary;
            hdr.quic_long.isValid(): ternary;
            meta.may_hold_initial: ternary;
            meta.cookie_form: ternary;
        }
        actions = { limit; limit_opening; NoAction; }
        const entries = {
            (Direction.UP, VERDICT_CONTINUE, 0, 0, true, 0x02 &&& 0x12, _, _, _): limit_opening(); // SYN
            (Direction.UP, VERDICT_CONTINUE, 0, 0, _, _, true, 1, FORM_PLAIN_CID): limit();
            (Direction.UP, VERDICT_CONTINUE, 0, 0, _, _, true, 1, _): limit_opening();
            (Direction.UP, VERDICT_CONTINUE, 0, _, _, _, _, _, _): limit();
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        opening.apply();
    }
}

control Limits(in headers_t hdr, inout metadata_t meta) {
    DIRECT_METER(client_connections4, METER_PACKETS)
    DIRECT_METER(client_connections6, METER_PACKETS)
    DIRECT_METER(client_bytes4, METER_BYTES)
    DIRECT_METER(client_bytes6, METER_BYTES)
    DIRECT_METER(vip_connections, METER_PACKETS)
    DIRECT_METER(vip_bytes, METER_BYTES)

    action limit_client_connections4() {
        READ_METER(client_connections4, meta.client_connections_color)
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
        READ_METER(client_connections6, meta.client_connections_color)
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
        READ_METER(vip_connections, meta.connections_color)
    }

    table connections {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { limit_vip_connections; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = vip_connections;
        size = VIPS;
    }

    action limit_client_bytes4() {
        READ_METER(client_bytes4, meta.client_bytes_color)
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
        READ_METER(client_bytes6, meta.client_bytes_color)
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
        READ_METER(vip_bytes, meta.bytes_color)
    }

    table bytes {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { limit_vip_bytes; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = vip_bytes;
        size = VIPS;
    }

    apply {
        if (meta.may_open == 1 && meta.is_named == 0 && meta.real_server_verdict == VERDICT_CONTINUE) {
            if (hdr.ipv4.isValid()) {
                connections_by_client4.apply();
            } else {
                connections_by_client6.apply();
            }
            if (meta.client_connections_color == 0) {
                connections.apply();
            }
        }
        if (meta.is_limited == 1 && meta.real_server_verdict == VERDICT_CONTINUE && meta.client_connections_color == 0
            && meta.connections_color == 0) {
            if (hdr.ipv4.isValid()) {
                bytes_by_client4.apply();
            } else {
                bytes_by_client6.apply();
            }
            if (meta.client_bytes_color == 0) {
                bytes.apply();
            }
        }
    }
}

// The verdict of the checks that follow the first verdict, and of the limits.
control LastVerdict(inout metadata_t meta) {
    LimitCounter() refusals;
    bit<2> kind;

    action use_vip_verdict() {
        meta.verdict = meta.vip_verdict;
    }

    action use_real_server_verdict() {
        meta.verdict = meta.real_server_verdict;
    }

    action use_cookie_verdict() {
        meta.verdict = meta.cookie_verdict;
    }

    action refuse(bit<8> reason, bit<2> limit) {
        meta.verdict = reason;
        kind = limit;
        meta.is_refused_by_limit = 1;
    }

    @hidden table last_reason {
        key = {
            meta.verdict: ternary;
            meta.vip_verdict: ternary;
            meta.real_server_verdict: ternary;
            meta.client_connections_color: ternary;
            meta.connections_color: ternary;
            meta.client_bytes_color: ternary;
            meta.bytes_color: ternary;
            meta.cookie_verdict: ternary;
        }
        actions = { use_vip_verdict; use_real_server_verdict; refuse; use_cookie_verdict; NoAction; }
        const entries = {
            (VERDICT_CONTINUE, 0, 0, 0, 0, 0, 0, 0): NoAction();
            (VERDICT_CONTINUE, 0, 0, 0, 0, 0, 0, _): use_cookie_verdict();
            (VERDICT_CONTINUE, 0, 0, 0, 0, 0, _, _): refuse(DROP_LIMIT_BANDWIDTH, LIMIT_BANDWIDTH);
            (VERDICT_CONTINUE, 0, 0, 0, 0, _, _, _): refuse(DROP_LIMIT_CLIENT_BANDWIDTH, LIMIT_CLIENT_BANDWIDTH);
            (VERDICT_CONTINUE, 0, 0, 0, _, _, _, _): refuse(DROP_LIMIT_CONNECTIONS, LIMIT_CONNECTIONS);
            (VERDICT_CONTINUE, 0, 0, _, _, _, _, _): refuse(DROP_LIMIT_CLIENT_CONNECTIONS, LIMIT_CLIENT_CONNECTIONS);
            (VERDICT_CONTINUE, 0, _, _, _, _, _, _): use_real_server_verdict();
            (VERDICT_CONTINUE, _, _, _, _, _, _, _): use_vip_verdict();
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        kind = 0;
        last_reason.apply();
        if (meta.is_refused_by_limit == 1) {
            refusals.apply(meta.vip_id, kind);
        }
    }
}

#endif
