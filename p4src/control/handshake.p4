// A QUIC client's first packets - several Initials, their retransmissions, 0-RTT - carry nothing that names a server, and must reach one. A bounded table,
// apart from TCP's, remembers it while the handshake lasts: CloudCookie (VI.b) calls it ephemeral. Version numbers are not looked at.
//
// To the VIP there come, by RFC 8999 alone:
//   long header    of a handshake that the table knows; else with a connection id that one of our servers chose and sealed; else, in a datagram that may
//                  hold an Initial (RFC 9000, 14.1), the first of a new one
//   short header   with a connection id that one of our servers chose; else, where servers choose others or none, of a handshake that the table knows
// A connection id in the clear may be a client's own that happens to look like it: there the table is asked first.
control Handshake(in headers_t hdr, inout metadata_t meta) {
    ConnectionTable(HANDSHAKES) handshakes;
    ClaimCounter() claims;

    action set_timeout(bit<16> ticks) {
        meta.connection.timeout = ticks;
    }

    table timeout {
        actions = { set_timeout; }
        default_action = set_timeout(10); // 10.5 s
    }

    apply {
        meta.connection.op = CONNECTION_LOOKUP;
        meta.connection.refresh = 1;
        if (meta.second_pass == 1) {
            meta.connection.op = meta.pass_connection;
            meta.connection.sid = meta.pass_sid;
        } else if (hdr.quic_short.isValid() && meta.is_named == 1) {
            meta.connection.refresh = 0; // its handshake is over
        }
        timeout.apply();
        meta.connection.now = meta.now;
        meta.connection.fingerprint = meta.connection_hash;
        handshakes.apply(meta.connection);

        if (meta.second_pass == 1) {
            if (meta.connection.taken == 1) {
                claims.apply(CLAIM_TAKEN);
            } else if (meta.connection.op == CONNECTION_JOIN && meta.connection.done == 0) {
                claims.apply(CLAIM_REFUSED);
            }
        } else if (meta.connection.done == 1 && (hdr.quic_long.isValid() || meta.carried.what != Carried.SEALED_CID)) {
            meta.named = meta.connection.sid;
            meta.is_named = 1;
            meta.outcome = OUTCOME_RETRIEVED_HANDSHAKE;
        } else if (hdr.quic_long.isValid() && meta.carried.what != Carried.SEALED_CID && hdr.udp.length >= 8 + QUIC_INITIAL) {
            meta.begins = 1;
            meta.is_named = 0;
        } else if (meta.is_named == 0) {
            meta.drop = DROP_QUIC_NO_CONNECTION;
            if (hdr.quic_long.isValid()) {
                meta.drop = DROP_QUIC_SMALL;
            }
        }
    }
}
