// SPDX-License-Identifier: Apache-2.0
// QUIC handshakes. The first packets of a client (several Initials, retransmissions, 0-RTT) name no server, but must
// all reach the same one. A bounded table, separate from TCP's, keeps the server during the handshake: CloudCookie
// (VI.b) calls it ephemeral. The switch reads the version-independent header only (RFC 8999). It treats packets to
// the VIP as follows, the first match first:
//
//     long header    known handshake; sealed connection id that a server chose; datagram that may hold an Initial
//                    (RFC 9000, 14.1), the first of a new handshake; unsealed connection id that a server chose
//     short header   sealed connection id; known handshake, for servers that choose other connection ids or none;
//                    unsealed connection id
//
// Unsealed connection ids come last because a client's own id may look like one.
control Handshake(in headers_t hdr, inout metadata_t meta) {
    HandshakeTable(HANDSHAKES) handshakes;
    ClaimCounter() claims;

#ifdef CONFIGURABLE_TIMEOUTS
    action set_timeout(bit<16> ticks) {
        meta.connection.timeout = ticks;
    }

    table timeout {
        actions = { set_timeout; }
        default_action = set_timeout(HANDSHAKE_TICKS);
    }
#endif

    apply {
        meta.connection.op = CONNECTION_LOOKUP;
        meta.connection.refresh = 1;
        if (meta.second_pass == 1) {
            meta.connection.op = meta.resubmit_connection_op;
            meta.connection.sid = meta.resubmit_sid;
        } else if (hdr.quic_short.isValid() && meta.quic_cookie.kind != QuicCookie.NONE) {
            meta.connection.refresh = 0; // the handshake is over
        }
#ifdef CONFIGURABLE_TIMEOUTS
        timeout.apply();
#endif
        meta.connection.now = meta.now;
        meta.connection.fingerprint = meta.connection_hash;
        handshakes.apply(meta.connection);

        if (meta.second_pass == 1) {
            if (meta.connection.is_new_entry == 1) {
                claims.apply(CLAIM_TAKEN);
            } else if (meta.connection.op == CONNECTION_JOIN && meta.connection.has_entry == 0) {
                claims.apply(CLAIM_REFUSED);
            }
        } else if (meta.connection.has_entry == 1
            && (hdr.quic_long.isValid() || meta.quic_cookie.kind != QuicCookie.SEALED_CID)) {
            meta.candidate_sid = meta.connection.sid;
            meta.candidate_found = 1;
            meta.outcome = OUTCOME_RETRIEVED_HANDSHAKE;
        } else if (hdr.quic_long.isValid() && meta.quic_cookie.kind != QuicCookie.SEALED_CID
            && hdr.udp.length >= 8 + QUIC_INITIAL) {
            meta.is_new_connection = 1;
            meta.candidate_found = 0;
        } else if (meta.candidate_found == 0) {
            meta.verdict = DROP_QUIC_NO_CONNECTION;
            if (hdr.quic_long.isValid()) {
                meta.verdict = DROP_QUIC_SMALL;
            }
        }
    }
}
