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
// Unsealed connection ids come last because a client's own id may look like one. A datagram that may hold an Initial
// claims an entry even if a sealed connection id names the server; then the entry is for that server.
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
        // The operation does not depend on the cipher, so a switch can access the table before it has unsealed the cookie.
        meta.connection.op = CONNECTION_LOOKUP;
        meta.connection.refresh = 1;
        if (IS_ERROR) {
            meta.connection.refresh = 0;
        }
        if (meta.releases_handshake == 1) {
            meta.connection.op = CONNECTION_RELEASE;
        } else if (meta.may_hold_initial == 1 && meta.hash_found == 1) { // without a server of the hash, no server is active
            meta.connection.op = CONNECTION_JOIN;
        } else if (hdr.quic_short.isValid() && meta.quic_cookie.has_form == 1) {
            meta.connection.refresh = 0; // the handshake is over
        }
#ifdef CONFIGURABLE_TIMEOUTS
        timeout.apply();
#endif
        meta.connection.now = meta.now;
        meta.connection.fingerprint = meta.connection_hash;
        handshakes.apply(meta.connection);

        if (meta.connection.is_new_entry == 1) {
            claims.apply(CLAIM_TAKEN);
        } else if (meta.connection.op == CONNECTION_JOIN && meta.connection.has_entry == 0) {
            claims.apply(CLAIM_REFUSED);
        }
    }
}

// Decides by the result of the handshake table: the outcome, or the reason to drop the packet.
control HandshakeOutcome(in headers_t hdr, inout metadata_t meta) {
    apply {
        bit<1> is_sealed = 0;
        if (meta.quic_cookie.kind == QuicCookie.SEALED_CID) {
            is_sealed = 1;
        }

        if (meta.releases_handshake == 1) {
            meta.verdict = DROP_SERVER_GONE;
        } else if (meta.connection.has_entry == 1 && meta.connection.is_new_entry == 0
            && (is_sealed == 0 || hdr.quic_long.isValid())) {
            meta.outcome = OUTCOME_RETRIEVED_HANDSHAKE;
        } else if (meta.may_hold_initial == 1 && is_sealed == 0) {
            meta.candidate_found = 0;
            if (meta.connection.is_new_entry == 1) {
                meta.is_new_connection = 1;
            } else if (meta.hash_found == 1) {
                meta.outcome = OUTCOME_HASHED_HANDSHAKE;
            } else {
                meta.verdict = DROP_VIP_NO_SERVER;
            }
        } else if (meta.candidate_found == 0 && !IS_ERROR) {
            meta.verdict = DROP_QUIC_NO_CONNECTION;
            if (hdr.quic_long.isValid()) {
                meta.verdict = DROP_QUIC_SMALL;
            }
        }
    }
}
