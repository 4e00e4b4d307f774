// TCP flows that cannot carry a cookie - no timestamps, an odd layout of options, a server without an agent - go by consistent hashing, and a bounded
// table remembers them so that a change of servers does not move them. An entry is taken when the connection begins, and expires.
control Fallback(in headers_t hdr, inout metadata_t meta) {
    ConnectionTable(FALLBACK_CONNECTIONS) connections;
    ClaimCounter() claims;

    action set_timeout(bit<16> ticks) {
        meta.connection.timeout = ticks;
    }

    table timeout {
        actions = { set_timeout; }
        default_action = set_timeout(286); // 300 s
    }

    apply {
        if (meta.direction == Direction.UP) {
            meta.connection.sid = meta.hashed;
            if (meta.begins == 0) {
                meta.connection.op = CONNECTION_LOOKUP;
                meta.connection.refresh = 1;
            } else if (meta.can_carry == 1) {
                meta.connection.op = CONNECTION_RELEASE; // a connection with a cookie begins under the same addresses and ports
            } else if (meta.is_hashed == 1) {
                meta.connection.op = CONNECTION_CLAIM;
            }
        } else if (meta.outcome == OUTCOME_NO_INSIGHT && (hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK)) {
            meta.connection.sid = meta.sid;
            meta.connection.op = CONNECTION_CLAIM; // this flow will carry no cookie: remember its server
        }
        if (meta.connection.op != CONNECTION_NONE) {
            timeout.apply();
            meta.connection.now = meta.now;
            meta.connection.fingerprint = meta.connection_hash;
            connections.apply(meta.connection);
            if (meta.connection.op == CONNECTION_CLAIM) {
                if (meta.connection.taken == 1) {
                    claims.apply(CLAIM_TAKEN);
                } else {
                    claims.apply(CLAIM_REFUSED);
                }
            }
        }
    }
}
