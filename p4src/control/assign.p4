// Assigning phase (CloudCookie, IV.B), for a SYN that can carry a cookie and a handshake's first Initial: choose a server by the VIP's policy. What
// the choice needs beyond this packet is consulted before: the root of the tournament tree in meta.tree.best, and Maglev.
control Assign(inout metadata_t meta) {
    RoundRobin() round_robin;
    bit<16> index;

    action select_server(sid_t sid) {
        meta.named = sid;
        meta.is_named = 1;
        meta.outcome = OUTCOME_ASSIGNED_RR;
    }

    table pool {
        key = {
            meta.vip_id: exact @name("vip_id");
            index: exact @name("index");
        }
        actions = { select_server; NoAction; }
        const default_action = NoAction();
        size = POOL_ENTRIES;
    }

    apply {
        meta.named = meta.hashed;
        meta.is_named = meta.is_hashed;
        if (meta.policy == POLICY_HASH) {
            meta.outcome = OUTCOME_ASSIGNED_HASH;
        } else if (meta.policy == POLICY_CHEETAH_RR) {
            round_robin.apply(meta.vip_id, meta.pool_size, index);
            if (!pool.apply().hit) {
                meta.outcome = OUTCOME_ASSIGNED_NO_LOAD;
            }
        } else if (meta.tree.best == 0) {
            meta.outcome = OUTCOME_ASSIGNED_NO_LOAD;
        } else {
            meta.named = meta.tree.best[15:0];
            meta.is_named = 1;
            meta.outcome = OUTCOME_ASSIGNED_CCLB4;
            if (meta.policy == POLICY_CHEETAH_LL) {
                meta.outcome = OUTCOME_ASSIGNED_LL;
            }
        }
    }
}
