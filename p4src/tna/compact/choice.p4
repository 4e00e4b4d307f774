// SPDX-License-Identifier: Apache-2.0
// Chooses the server of a client's packet, as control/assign.p4, control/fallback.p4 and control/choice.p4 do.
#ifndef FRONTAGE_TNA_COMPACT_CHOICE_P4
#define FRONTAGE_TNA_COMPACT_CHOICE_P4

// The candidate of a new connection. The best server of the tree is read before.
control Assign(inout metadata_t meta) {
    RoundRobin() round_robin;
    action use_hash(bit<8> outcome) {
        meta.candidate_found = meta.hash_found;
        meta.assigned_outcome = outcome;
    }

    action use_pool() {
        meta.uses_pool = 1;
        use_hash(OUTCOME_ASSIGNED_NO_LOAD); // unless an entry of the pool is found
    }

    action use_best(bit<8> outcome) {
        meta.is_best = 1;
        meta.candidate_found = 1;
        meta.assigned_outcome = outcome;
    }

    @hidden table by_policy {
        key = {
            meta.policy: ternary;
            meta.tree.best[31:16]: ternary;
        }
        actions = { use_hash; use_pool; use_best; }
        const entries = {
            (POLICY_HASH, _): use_hash(OUTCOME_ASSIGNED_HASH);
            (POLICY_CHEETAH_RR, _): use_pool();
            (_, 0): use_hash(OUTCOME_ASSIGNED_NO_LOAD);
            (POLICY_CHEETAH_LL, _): use_best(OUTCOME_ASSIGNED_LL);
        }
        const default_action = use_best(OUTCOME_ASSIGNED_CCLB4);
        size = 8;
    }

    apply {
        if (!IS_CHECK && meta.direction == Direction.UP && meta.is_new_connection == 1 && meta.can_carry_cookie == 1) {
            by_policy.apply();
        }
#ifndef ONE_PROTOCOL
        else if (meta.joined_handshake == JOIN_FREE || meta.joined_handshake == JOIN_EXPIRED) {
            by_policy.apply();
        }
#endif
        if (meta.uses_pool == 1 && meta.verdict == VERDICT_CONTINUE) {
            round_robin.apply(meta.vip_id, meta.pool_size, meta.pool_index);
        }
    }
}

// The server that the packet or the policy names.
control Candidate(in headers_t hdr, inout metadata_t meta) {
    action select_server(sid_t sid) {
        meta.candidate_sid = sid;
        meta.candidate_found = 1;
        meta.assigned_outcome = OUTCOME_ASSIGNED_RR;
    }

    table pool {
        key = {
            meta.vip_id: exact @name("vip_id");
            meta.pool_index: exact @name("index");
        }
        actions = { select_server; NoAction; }
        const default_action = NoAction();
        size = POOL_ENTRIES;
    }

    action select_best() {
        IN_HASH { meta.candidate_sid = 4w0 ++ meta.tree.best[11:0]; }
    }

#ifdef FOUR_PIPES
    action read_cookie() {} // the egress of the core has read it
#define HAS_COOKIE hdr.site.has_cookie == 1
#else
    action read_cookie() {
        IN_HASH { meta.candidate_sid = 4w0 ++ meta.opened.b ++ meta.opened.a[6:3]; }
    }
#define HAS_COOKIE meta.can_carry_cookie == 1 && meta.is_opened == 1 && meta.opened.a[2:0] == 0
#endif

    action use_hash_sid() {
        meta.candidate_sid = meta.hash_sid;
    }

    apply {
        if (IS_CHECK || IS_NAMED) {
            // The check (control/checker.p4) or the cookie of QUIC names the server.
        } else if (IS_TCP && meta.is_new_connection == 0) {
            read_cookie();
            if (HAS_COOKIE) {
                meta.candidate_found = 1;
            }
        } else if (meta.uses_pool == 1) {
            if (pool.apply().miss) {
                use_hash_sid();
            }
        } else if (meta.is_best == 1) {
            select_best();
        } else {
            use_hash_sid();
        }
    }
}

// ConnectionTable (tna/stateful.p4) in one table of the chip.
control Connections(inout metadata_t meta) {
    Register<connection_entry_t, bit<16>>(FALLBACK_CONNECTIONS) owners;

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) refresh = {
        void apply(inout connection_entry_t entry, out bit<1> is_own) {
            is_own = 0;
            if (entry.fingerprint == meta.connection_hash && meta.now - entry.seen <= FALLBACK_TICKS) {
                is_own = 1;
                entry.seen = meta.now;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) claim = {
        void apply(inout connection_entry_t entry, out bit<1> is_own) {
            is_own = 0;
            if (entry.fingerprint == meta.connection_hash || meta.now - entry.seen > FALLBACK_TICKS) {
                is_own = 1;
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

    apply {
        if (meta.connection.op == CONNECTION_LOOKUP) {
            meta.connection.has_entry = refresh.execute(meta.connection.index);
        } else if (meta.connection.op == CONNECTION_CLAIM) {
            meta.connection.is_new_entry = claim.execute(meta.connection.index);
        } else if (meta.connection.op == CONNECTION_RELEASE) {
            release.execute(meta.connection.index);
        }
    }
}

// The table of connections without a cookie.
control Fallback(in headers_t hdr, inout metadata_t meta) {
    @name("connections") Connections() connections;
    ConnectionSids(FALLBACK_CONNECTIONS) sids;
    ClaimCounter() claims;

    action set_operation(bit<8> op) {
        meta.connection.op = op;
        meta.connection.sid = meta.hash_sid;
    }

    action claim_for_server() {
        meta.connection.op = CONNECTION_CLAIM;
        meta.connection.sid = meta.sid;
    }

    @hidden table operation {
        key = {
            meta.direction: ternary;
            meta.is_new_connection: ternary;
            meta.can_carry_cookie: ternary;
            meta.has_report: ternary;
            meta.hash_found: ternary;
            hdr.tcp.flags: ternary;
            meta.verdict: ternary;
        }
        actions = { set_operation; claim_for_server; NoAction; }
        const entries = {
            (Direction.UP, 0, _, _, _, _, VERDICT_CONTINUE): set_operation(CONNECTION_LOOKUP);
            // A new connection of the same addresses and ports has a cookie.
            (Direction.UP, 1, 1, _, _, _, VERDICT_CONTINUE): set_operation(CONNECTION_RELEASE);
            (Direction.UP, 1, 0, _, 1, _, VERDICT_CONTINUE): set_operation(CONNECTION_CLAIM);
            // SYN and ACK without a report: the connection will carry no cookie.
            (Direction.DOWN, _, _, 0, _, 0x12 &&& 0x12, VERDICT_CONTINUE): claim_for_server();
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        if (IS_REFUSED && meta.hash_found == 1) {
            set_operation(CONNECTION_CLAIM); // later packets go to the next server at once
        } else if (IS_TCP && !IS_CHECK && !IS_REFUSED) {
            operation.apply();
        }
        connections.apply(meta);
        if (meta.connection.has_entry == 1 || meta.connection.is_new_entry == 1) {
            sids.apply(meta.connection);
        }
        if (meta.connection.op == CONNECTION_CLAIM && meta.connection.is_new_entry == 1) {
            claims.apply(CLAIM_TAKEN);
        } else if (meta.connection.op == CONNECTION_CLAIM) {
            claims.apply(CLAIM_REFUSED);
        }
    }
}

control Choice(in headers_t hdr, inout metadata_t meta) {
#ifndef ONE_PROTOCOL
    @name("quic") QuicChoice() quic_choice;
    @name("handshake_sids") HandshakeSids() handshake_sids;
#endif

    // The servers of each VIP, active and draining.
    action set_member(bit<16> slot, bit<1> active) {
        meta.slot = slot;
        meta.active = active;
        meta.is_member = 1;
    }

    table member {
        key = {
            meta.vip_id: exact @name("vip_id");
            meta.candidate_sid: exact @name("sid");
        }
        actions = { set_member; NoAction; }
        const default_action = NoAction();
        size = SERVERS;
    }

    action use_table() {
        meta.sid = meta.connection.sid;
        meta.outcome = OUTCOME_RETRIEVED_TABLE;
    }

    action use_cookie() {
        meta.sid = meta.candidate_sid;
        meta.outcome = OUTCOME_RETRIEVED_COOKIE;
    }

    action use_assigned() {
        meta.sid = meta.candidate_sid;
        meta.outcome = meta.assigned_outcome;
    }

    action change_leaf(bit<8> op) {
        meta.tree.op = op;
        meta.tree.slot = meta.slot;
        meta.tree.sid = meta.candidate_sid;
        meta.tree.score = meta.flow_unit;
    }

    action use_assigned_and_add() {
        use_assigned();
        change_leaf(TREE_ADD);
    }

    action use_cookie_and_subtract() {
        use_cookie();
        change_leaf(TREE_SUB);
    }

    action use_hash(bit<8> outcome) {
        meta.sid = meta.hash_sid;
        meta.outcome = outcome;
    }

    action no_server() {
        meta.verdict = DROP_VIP_NO_SERVER;
    }

#ifndef WITHOUT_RECENT
    action use_recent() {
        meta.sid = meta.candidate_sid;
        meta.outcome = OUTCOME_RETRIEVED_RECENT;
    }
#endif

#ifndef WITHOUT_CHECKER
    action use_named() {
        meta.sid = meta.candidate_sid;
    }

    action no_named_server() {
        meta.verdict = DROP_CHECK_NO_SERVER;
    }
#endif

    @hidden table first_found {
        key = {
            meta.is_new_connection: ternary;
            meta.can_carry_cookie: ternary;
            meta.connection.has_entry: ternary;
            meta.is_member: ternary;
            meta.active: ternary;
            meta.tree.best[31:16]: ternary;
            meta.policy: ternary;
            hdr.tcp.flags: ternary;
            meta.hash_found: ternary;
        }
        actions = { use_table; use_cookie; use_assigned; use_assigned_and_add; use_cookie_and_subtract; use_hash; no_server; }
        const entries = {
            (0, _, 1, _, _, _, _, _, _): use_table();
            (0, _, _, 1, _, _, POLICY_CHEETAH_LL, 0x01 &&& 0x01, _): use_cookie_and_subtract(); // FIN
            (0, _, _, 1, _, _, POLICY_CHEETAH_LL, 0x04 &&& 0x04, _): use_cookie_and_subtract(); // RST
            (0, _, _, 1, _, _, _, _, _): use_cookie();
            (1, _, _, 1, 1, 0, _, _, _): use_assigned();
            (1, _, _, 1, 1, _, _, _, _): use_assigned_and_add();
            (_, _, _, _, _, _, _, _, 0): no_server();
            (1, 1, _, _, _, _, _, _, _): use_hash(OUTCOME_ASSIGNED_NO_LOAD);
            (1, 0, _, _, _, _, _, _, _): use_hash(OUTCOME_ASSIGNED_FALLBACK);
            (0, 1, _, _, _, _, _, _, _): use_hash(OUTCOME_HASHED_BAD_COOKIE);
        }
        const default_action = use_hash(OUTCOME_HASHED_NO_COOKIE);
        size = 16;
    }

    apply {
        if (meta.candidate_found == 1) {
            member.apply();
        }
        if (meta.direction == Direction.UP && meta.verdict == VERDICT_CONTINUE) {
#ifndef WITHOUT_CHECKER
            if (IS_CHECK && meta.is_member == 1) {
                use_named();
            } else if (IS_CHECK) {
                no_named_server();
            } else
#endif
            if (IS_REFUSED && meta.hash_found == 1) {
                use_hash(OUTCOME_SECOND_HOP);
            } else
#ifndef WITHOUT_RECENT
            if (meta.uses_recent == 1 && meta.is_member == 1 && meta.connection.has_entry == 0) {
                use_recent();
            } else
#endif
            if (IS_TCP) {
                first_found.apply();
            }
#ifndef ONE_PROTOCOL
            else {
                quic_choice.apply(hdr, meta);
            }
#endif
        }
#ifndef ONE_PROTOCOL
        handshake_sids.apply(meta);
#endif
    }
}

#endif
