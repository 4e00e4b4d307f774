// SPDX-License-Identifier: Apache-2.0
// Chooses the server of a client's packet, as control/handshake.p4 and control/choice.p4 do.
#ifndef FRONTAGE_TNA_COMPACT_QUIC_CHOICE_P4
#define FRONTAGE_TNA_COMPACT_QUIC_CHOICE_P4

// HandshakeTable (tna/stateful.p4) in one table of the chip.
control Handshake(in headers_t hdr, inout metadata_t meta) {
    @name("handshakes.owners") Register<connection_entry_t, bit<16>>(HANDSHAKES) owners;
    ClaimCounter() claims;

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) look_up = {
        void apply(inout connection_entry_t entry, out bit<1> is_own) {
            is_own = 0;
            if (entry.fingerprint == meta.connection_hash && meta.now - entry.seen <= HANDSHAKE_TICKS) {
                is_own = 1;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) refresh = {
        void apply(inout connection_entry_t entry, out bit<1> is_own) {
            is_own = 0;
            if (entry.fingerprint == meta.connection_hash && meta.now - entry.seen <= HANDSHAKE_TICKS) {
                is_own = 1;
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

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) release = {
        void apply(inout connection_entry_t entry) {
            if (entry.fingerprint == meta.connection_hash) {
                entry.seen = 0;
            }
        }
    };

    action look_up_entry() {
        meta.connection.has_entry = look_up.execute(meta.connection.index);
    }

    action refresh_entry() {
        meta.connection.has_entry = refresh.execute(meta.connection.index);
    }

    action join_entry() {
        meta.joined = join.execute(meta.connection.index);
    }

    action release_entry() {
        release.execute(meta.connection.index);
    }

    @hidden table operation {
        key = {
            meta.direction: ternary;
            meta.verdict: ternary;
            meta.at_cookie_address: ternary;
            hdr.second_pass.isValid(): ternary;
            meta.may_hold_initial: ternary;
            meta.hash_found: ternary;
            hdr.quic_short.isValid(): ternary;
            meta.quic_cookie.has_form: ternary;
        }
        actions = { look_up_entry; refresh_entry; join_entry; release_entry; @defaultonly NoAction; }
        const entries = {
            (Direction.UP, VERDICT_CONTINUE, 0, true, _, _, _, _): release_entry();
            (Direction.UP, VERDICT_CONTINUE, 0, _, 1, 1, _, _): join_entry(); // without a server of the hash, no server is active
            (Direction.UP, VERDICT_CONTINUE, 0, _, _, _, true, 1): look_up_entry(); // the handshake is over
            (Direction.UP, VERDICT_CONTINUE, 0, _, _, _, _, _): refresh_entry();
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        operation.apply();
        if (meta.joined == JOIN_FREE || meta.joined == JOIN_EXPIRED) {
            claims.apply(CLAIM_TAKEN);
        } else if (meta.joined != 0 && meta.joined != JOIN_OWN) {
            claims.apply(CLAIM_REFUSED);
        }
    }
}

control Choice(in headers_t hdr, inout metadata_t meta) {
    // The servers of each VIP, active and draining.
    action set_member(bit<16> slot, bit<1> active) {
        meta.slot = slot;
        meta.active = active;
        meta.is_member = 1;
    }

    table member {
        key = {
            meta.vip_id: exact @name("vip_id");
            meta.tree.best[15:0]: exact @name("sid");
        }
        actions = { set_member; NoAction; }
        const default_action = NoAction();
        size = SERVERS;
    }

    // The server comes from the handshake table.
    action use_handshake() {
        meta.uses_handshake = 1;
        meta.outcome = OUTCOME_RETRIEVED_HANDSHAKE;
    }

    action use_candidate(bit<8> outcome) {
        meta.sid = meta.tree.best[15:0];
        meta.outcome = outcome;
    }

    action use_candidate_and_add(bit<8> outcome) {
        use_candidate(outcome);
        meta.tree.op = TREE_ADD;
        meta.tree.slot = meta.slot;
        meta.tree.sid = meta.tree.best[15:0];
        meta.tree.score = meta.flow_unit;
    }

    action use_hash(bit<8> outcome) {
        meta.sid = meta.hash_sid;
        meta.outcome = outcome;
    }

    // Also the server of an entry that the packet has claimed.
    action server_gone() {
        meta.sid = meta.tree.best[15:0];
        meta.verdict = DROP_SERVER_GONE;
    }

    action drop(bit<8> reason) {
        meta.verdict = reason;
    }

    @hidden table first_found {
        key = {
            meta.direction: ternary;
            meta.verdict: ternary;
            hdr.second_pass.isValid(): ternary;
            meta.at_cookie_address: ternary;
            meta.quic_cookie.kind: ternary;
            meta.has_sealed_id: ternary;
            hdr.quic_long.isValid(): ternary;
            meta.may_hold_initial: ternary;
            meta.connection.has_entry: ternary;
            meta.joined: ternary;
            meta.hash_found: ternary;
            meta.policy: ternary;
            meta.tree.best[31:16]: ternary;
            meta.is_member: ternary;
            meta.active: ternary;
        }
        actions = { use_handshake; use_candidate; use_candidate_and_add; use_hash; server_gone; drop; NoAction; }
        const entries = {
            (Direction.UP, VERDICT_CONTINUE, true, _, _, _, _, _, _, _, _, _, _, _, _): server_gone();
            // to a cookie address
            (Direction.UP, VERDICT_CONTINUE, _, 1, QuicCookie.STATIC, _, _, _, _, _, _, _, _, 1, _): use_candidate(OUTCOME_RETRIEVED_ADDRESS);
            (Direction.UP, VERDICT_CONTINUE, _, 1, QuicCookie.STATIC, _, _, _, _, _, _, _, _, _, _): server_gone();
            (Direction.UP, VERDICT_CONTINUE, _, 1, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_COOKIE_FORGED);
            // a sealed connection id that a server chose, behind a short header
            (Direction.UP, VERDICT_CONTINUE, _, _, QuicCookie.SEALED_CID, _, false, _, _, _, _, _, _, 1, _): use_candidate(OUTCOME_RETRIEVED_CID);
            (Direction.UP, VERDICT_CONTINUE, _, _, QuicCookie.SEALED_CID, _, false, _, _, _, _, _, _, _, _): server_gone();
            // a known handshake
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, _, 1, _, _, _, _, _, _): use_handshake();
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, _, _, JOIN_OWN, _, _, _, _, _): use_handshake();
            // a sealed connection id behind a long header
            (Direction.UP, VERDICT_CONTINUE, _, _, QuicCookie.SEALED_CID, _, _, _, _, _, _, _, _, 1, _): use_candidate(OUTCOME_RETRIEVED_CID);
            (Direction.UP, VERDICT_CONTINUE, _, _, QuicCookie.SEALED_CID, _, _, _, _, _, _, _, _, _, _): server_gone();
            // the first packet of a handshake
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, _, 0, _, _, _, _): drop(DROP_VIP_NO_SERVER);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, 1, _, 1, _, JOIN_FREE, _, _, _, _, _): use_hash(OUTCOME_ASSIGNED_NO_LOAD);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, JOIN_FREE, _, POLICY_HASH, _, 1, 1): use_candidate(OUTCOME_ASSIGNED_HASH);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, JOIN_FREE, _, _, 0, _, _): use_hash(OUTCOME_ASSIGNED_NO_LOAD);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, JOIN_FREE, _, POLICY_CHEETAH_LL, _, 1, 1): use_candidate_and_add(OUTCOME_ASSIGNED_LL);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, JOIN_FREE, _, POLICY_CCLB4, _, 1, 1): use_candidate_and_add(OUTCOME_ASSIGNED_CCLB4);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, JOIN_FREE, _, _, _, _, _): use_hash(OUTCOME_ASSIGNED_NO_LOAD);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, 1, _, 1, _, JOIN_EXPIRED, _, _, _, _, _): use_hash(OUTCOME_ASSIGNED_NO_LOAD);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, JOIN_EXPIRED, _, POLICY_HASH, _, 1, 1): use_candidate(OUTCOME_ASSIGNED_HASH);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, JOIN_EXPIRED, _, _, 0, _, _): use_hash(OUTCOME_ASSIGNED_NO_LOAD);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, JOIN_EXPIRED, _, POLICY_CHEETAH_LL, _, 1, 1): use_candidate_and_add(OUTCOME_ASSIGNED_LL);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, JOIN_EXPIRED, _, POLICY_CCLB4, _, 1, 1): use_candidate_and_add(OUTCOME_ASSIGNED_CCLB4);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, JOIN_EXPIRED, _, _, _, _, _): use_hash(OUTCOME_ASSIGNED_NO_LOAD);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, 1, _, _, _, _, _, _, _): use_hash(OUTCOME_HASHED_HANDSHAKE);
            // any other packet
            (Direction.UP, VERDICT_CONTINUE, _, _, QuicCookie.PLAIN_CID, _, _, _, _, _, _, _, _, 1, _): use_candidate(OUTCOME_RETRIEVED_CID);
            (Direction.UP, VERDICT_CONTINUE, _, _, QuicCookie.PLAIN_CID, _, _, _, _, _, _, _, _, _, _): server_gone();
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, true, _, _, _, _, _, _, _, _): drop(DROP_QUIC_SMALL);
            (Direction.UP, VERDICT_CONTINUE, _, _, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_QUIC_NO_CONNECTION);
        }
        const default_action = NoAction();
        size = 32;
    }

    apply {
        if (meta.direction == Direction.UP) {
            member.apply();
        }
        first_found.apply();
    }
}

// The SIDs of the handshake table, each of which its first packet writes.
control HandshakeSids(inout metadata_t meta) {
    @name("handshake_sids.sids") Register<bit<16>, bit<16>>(HANDSHAKES) sids;

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

    @hidden table access {
        key = {
            meta.uses_handshake: ternary;
            meta.joined: ternary;
        }
        actions = { read_sid; write_sid; @defaultonly NoAction; }
        const entries = {
            (1, _): read_sid();
            (_, JOIN_FREE): write_sid();
            (_, JOIN_EXPIRED): write_sid();
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        access.apply();
    }
}

#endif
