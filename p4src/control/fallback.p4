// SPDX-License-Identifier: Apache-2.0
// TCP connections that cannot carry a cookie: clients without timestamps or with an unusual layout of options, and
// servers without an agent. Consistent hashing chooses their server, and a bounded table keeps it when the set of
// servers changes. A connection claims its entry when it begins; the entry expires when idle.
control Fallback(in headers_t hdr, inout metadata_t meta) {
    ConnectionTable(FALLBACK_CONNECTIONS) connections;
    ConnectionSids(FALLBACK_CONNECTIONS) sids;
    ClaimCounter() claims;

#ifdef CONFIGURABLE_TIMEOUTS
    action set_timeout(bit<16> ticks) {
        meta.connection.timeout = ticks;
    }

    table timeout {
        actions = { set_timeout; }
        default_action = set_timeout(FALLBACK_TICKS);
    }
#endif

    apply {
        if (meta.direction == Direction.UP) {
            meta.connection.sid = meta.hash_sid;
            if (ANSWERS_SYN) {
                meta.connection.op = CONNECTION_NONE; // the connection begins with the client's acknowledgment
            } else if (COMPLETES_HANDSHAKE) {
                meta.connection.op = CONNECTION_JOIN;
                meta.connection.refresh = 1;
                if (meta.can_carry_cookie == 1) {
                    meta.connection.op = CONNECTION_RELEASE;
                }
            } else if (meta.is_refused == 1) {
                meta.connection.sid = meta.next_sid;
                if (meta.hash_found == 1) {
                    meta.connection.op = CONNECTION_CLAIM; // later packets go there at once
                    meta.outcome = OUTCOME_SECOND_HOP;
                }
            } else if (meta.is_new_connection == 0) {
                meta.connection.op = CONNECTION_LOOKUP;
                meta.connection.refresh = 1;
                if (IS_ERROR) {
                    meta.connection.refresh = 0; // anybody can forge an error
                }
            } else if (meta.can_carry_cookie == 1) {
                // A new connection of the same addresses and ports has a cookie.
                meta.connection.op = CONNECTION_RELEASE;
            } else if (meta.hash_found == 1) {
                meta.connection.op = CONNECTION_CLAIM;
            }
        } else if ((hdr.tcp.ck == 0 || !hdr.tcp_timestamp.isValid())
            && (hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK)) {
            meta.connection.sid = meta.sid;
            meta.connection.op = CONNECTION_CLAIM; // the connection will carry no cookie
        }
        if (meta.connection.op != CONNECTION_NONE) {
#ifdef CONFIGURABLE_TIMEOUTS
            timeout.apply();
#endif
            meta.connection.now = meta.now;
            meta.connection.fingerprint = meta.connection_hash;
            connections.apply(meta.connection);
            if (meta.connection.has_entry == 1) {
                sids.apply(meta.connection);
            }
            if (meta.connection.has_entry == 1
                && (meta.connection.op == CONNECTION_LOOKUP || meta.connection.op == CONNECTION_JOIN)) {
                meta.outcome = OUTCOME_RETRIEVED_TABLE;
            }
            if (meta.connection.is_new_entry == 1) {
                claims.apply(CLAIM_TAKEN);
            } else if (meta.connection.has_entry == 0
                && (meta.connection.op == CONNECTION_CLAIM || meta.connection.op == CONNECTION_JOIN)) {
                claims.apply(CLAIM_REFUSED);
            }
        }
    }
}
