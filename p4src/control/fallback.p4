// Flows that cannot carry a cookie - no TCP timestamps, an odd layout of options, a server without an agent - go by consistent
// hashing (Maglev, NSDI 2016, section 3.4), and a bounded table remembers them so that a change of servers does not move
// them. It is the only state per connection. An entry is taken when the connection begins, and expires.
control Fallback(inout metadata_t meta, out sid_t hashed, out bit<1> found) {
    ConnectionTable() connections;
    ClaimCounter() claims;
    bit<16> maglev_slot;

    action pick(sid_t sid) {
        hashed = sid;
        found = 1;
    }

    table maglev {
        key = {
            meta.vip_id: exact @name("vip_id");
            maglev_slot: exact @name("slot");
        }
        actions = { pick; NoAction; }
        const default_action = NoAction();
        size = MAGLEV_SLOTS;
    }

    action set_timeout(bit<16> ticks) {
        meta.connection.timeout = ticks;
    }

    table timeout {
        actions = { set_timeout; }
        default_action = set_timeout(286); // 300 s
    }

    apply {
        hashed = 0;
        found = 0;
        if (meta.direction == Direction.UP) {
            maglev_slot = meta.connection_hash[15:0] & meta.maglev_mask;
            maglev.apply();
            meta.connection.sid = hashed;
        } else {
            meta.connection.sid = meta.sid;
        }
        if (meta.connection.op == CONNECTION_CLAIM && meta.direction == Direction.UP && found == 0) {
            meta.connection.op = CONNECTION_NONE; // no server, no connection
        }
        if (meta.connection.op != CONNECTION_NONE) {
            timeout.apply();
            meta.connection.fingerprint = meta.connection_hash;
            connections.apply(meta.connection);
            if (meta.connection.op == CONNECTION_CLAIM) {
                if (meta.connection.done == 1) {
                    claims.apply(CLAIM_TAKEN);
                } else {
                    claims.apply(CLAIM_REFUSED);
                }
            }
        }
    }
}
