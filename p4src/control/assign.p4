// SPDX-License-Identifier: Apache-2.0
// Assigning phase (CloudCookie, IV.B): chooses a server by the VIP's policy, for a SYN that can carry a cookie and
// for the first Initial of a handshake. Its other inputs are read before: the root of the tournament tree
// (meta.tree.best), and Maglev's server.
control Assign(inout metadata_t meta) {
    RoundRobin() round_robin;
    bit<16> index;

    action select_server(sid_t sid) {
        meta.assigned_sid = sid;
        meta.is_assigned = 1;
        meta.assigned_outcome = OUTCOME_ASSIGNED_RR;
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

    action select_best() {
        IN_HASH { meta.assigned_sid = 4w0 ++ meta.tree.best[11:0]; }
    }

    apply {
        meta.assigned_sid = meta.hash_sid;
        meta.is_assigned = meta.hash_found;
        if (meta.policy == POLICY_HASH) {
            meta.assigned_outcome = OUTCOME_ASSIGNED_HASH;
        } else if (meta.policy == POLICY_CHEETAH_RR) {
            round_robin.apply(meta.vip_id, meta.pool_size, index);
            if (!pool.apply().hit) {
                meta.assigned_outcome = OUTCOME_ASSIGNED_NO_LOAD;
            }
        } else if (meta.tree.best[31:16] == 0) {
            meta.assigned_outcome = OUTCOME_ASSIGNED_NO_LOAD;
        } else {
            select_best();
            meta.is_assigned = 1;
            meta.assigned_outcome = OUTCOME_ASSIGNED_CCLB4;
            if (meta.policy == POLICY_CHEETAH_LL) {
                meta.assigned_outcome = OUTCOME_ASSIGNED_LL;
            }
        }
    }
}
