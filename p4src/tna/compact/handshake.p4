// SPDX-License-Identifier: Apache-2.0
// QUIC handshakes, as in control/handshake.p4.
#ifndef FRONTAGE_TNA_COMPACT_HANDSHAKE_P4
#define FRONTAGE_TNA_COMPACT_HANDSHAKE_P4

// HandshakeTable (tna/stateful.p4) in one table of the chip. The cipher has no result yet, so only the form of the connection id
// counts.
control Handshakes(in headers_t hdr, inout metadata_t meta) {
    Register<connection_entry_t, bit<16>>(HANDSHAKES) owners;

    RegisterAction<connection_entry_t, bit<16>, bit<8>>(owners) look_up = {
        void apply(inout connection_entry_t entry, out bit<8> result) {
            result = this.predicate(entry.fingerprint == meta.connection_hash, meta.now - entry.seen <= HANDSHAKE_TICKS);
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<8>>(owners) refresh = {
        void apply(inout connection_entry_t entry, out bit<8> result) {
            result = this.predicate(entry.fingerprint == meta.connection_hash, meta.now - entry.seen <= HANDSHAKE_TICKS);
            if (entry.fingerprint == meta.connection_hash && meta.now - entry.seen <= HANDSHAKE_TICKS) {
                entry.seen = meta.now;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<8>>(owners) join = {
        void apply(inout connection_entry_t entry, out bit<8> result) {
            result = this.predicate(entry.fingerprint == meta.connection_hash, meta.now - entry.seen <= HANDSHAKE_TICKS);
            if (entry.fingerprint == meta.connection_hash || meta.now - entry.seen > HANDSHAKE_TICKS) {
                entry.fingerprint = meta.connection_hash;
                entry.seen = meta.now;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<8>>(owners) release = {
        void apply(inout connection_entry_t entry) {
            if (entry.fingerprint == meta.connection_hash) {
                entry.seen = 0;
            }
        }
    };

    action look_up_entry() {
        meta.found_handshake = look_up.execute(meta.connection.index);
    }

    action refresh_entry() {
        meta.found_handshake = refresh.execute(meta.connection.index);
    }

    action join_entry() {
        meta.joined_handshake = join.execute(meta.connection.index);
    }

    action release_entry() {
        release.execute(meta.connection.index);
    }

    @hidden table operation {
        key = {
            meta.direction: ternary;
            meta.verdict: ternary;
            meta.at_cookie_address: ternary;
            hdr.udp.isValid(): ternary;
            hdr.second_pass.isValid(): ternary;
            meta.may_hold_initial: ternary;
            meta.hash_found: ternary;
            hdr.quic_short.isValid(): ternary;
            meta.cookie_form: ternary;
        }
        actions = { look_up_entry; refresh_entry; join_entry; release_entry; @defaultonly NoAction; }
        const entries = {
            (Direction.UP, VERDICT_CONTINUE, 0, true, true, _, _, _, _): release_entry();
            (Direction.UP, VERDICT_CONTINUE, 0, true, _, 1, 1, _, _): join_entry();
            (Direction.UP, VERDICT_CONTINUE, 0, true, _, _, _, true, FORM_NONE): refresh_entry();
            (Direction.UP, VERDICT_CONTINUE, 0, true, _, _, _, true, _): look_up_entry(); // the handshake is over
            (Direction.UP, VERDICT_CONTINUE, 0, true, _, _, _, _, _): refresh_entry();
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        operation.apply();
    }
}

control Handshake(in headers_t hdr, inout metadata_t meta) {
    @name("handshakes") Handshakes() handshakes;
    ClaimCounter() claims;

    apply {
        if (!IS_CHECK) {
            handshakes.apply(hdr, meta);
        }
        if (meta.joined_handshake == JOIN_FREE || meta.joined_handshake == JOIN_EXPIRED) {
            claims.apply(CLAIM_TAKEN);
        } else if (meta.joined_handshake == JOIN_OTHER) {
            claims.apply(CLAIM_REFUSED);
        }
    }
}

// Reads the server of a handshake, or stores that of a new one.
control HandshakeSids(inout metadata_t meta) {
    Register<bit<16>, bit<16>>(HANDSHAKES) sids;

    RegisterAction<bit<16>, bit<16>, bit<16>>(sids) read = {
        void apply(inout bit<16> sid, out bit<16> result) {
            result = sid;
        }
    };

    RegisterAction<bit<16>, bit<16>, bit<16>>(sids) write = {
        void apply(inout bit<16> sid) {
            sid = meta.sid;
        }
    };

    action read_sid() {
        meta.sid = read.execute(meta.connection.index);
    }

    action write_sid() {
        write.execute(meta.connection.index);
    }

    @hidden table operation {
        key = {
            meta.joined_handshake: ternary;
            meta.outcome: ternary;
        }
        actions = { read_sid; write_sid; @defaultonly NoAction; }
        const entries = {
            (JOIN_FREE, _): write_sid();
            (JOIN_EXPIRED, _): write_sid();
            (_, OUTCOME_RETRIEVED_HANDSHAKE): read_sid();
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        operation.apply();
    }
}

#endif
