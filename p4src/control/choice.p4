// SPDX-License-Identifier: Apache-2.0
// Chooses the server of a client's packet. The connection table and the handshake table come first, then the server that
// the policy, the packet or a packet of the server names (recent.p4), if it belongs to this VIP. The server of the hash comes
// last.
control Choice(in headers_t hdr, inout metadata_t meta) {
    ConnectionSids(HANDSHAKES) handshake_sids;
    TreeChange() tree_change; // tree.p4 of the architecture
    bit<8> tree_op;

    // The servers of each VIP, active and draining.
    action set_member(bit<16> slot, bit<1> active) {
        meta.slot = slot;
        meta.active = active;
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

    apply {
        tree_op = TREE_NONE;
        if (meta.candidate_found == 0 && meta.has_recent == 1 && meta.outcome != OUTCOME_RETRIEVED_TABLE
            && meta.outcome != OUTCOME_RETRIEVED_HANDSHAKE) {
            meta.candidate_found = 1;
            meta.candidate_sid = meta.recent_sid;
            meta.outcome = OUTCOME_RETRIEVED_RECENT;
        }
        if (meta.candidate_found == 1) {
            if (member.apply().miss) {
                meta.candidate_found = 0;
            } else if (meta.is_new_connection == 1 && meta.active == 0) {
                meta.candidate_found = 0;
            }
        }

        meta.sid = meta.candidate_sid;
        if (meta.outcome == OUTCOME_RETRIEVED_TABLE || meta.outcome == OUTCOME_RETRIEVED_HANDSHAKE
            || meta.outcome == OUTCOME_SECOND_HOP) {
            meta.sid = meta.connection.sid; // that of a handshake is read below
        } else if (meta.candidate_found == 1) {
            if (meta.is_new_connection == 1 && meta.tree.best[31:16] != 0 && !ANSWERS_SYN) {
                tree_op = TREE_ADD;
            } else if (BEGINS_CONNECTION && meta.active == 1
                && (meta.policy == POLICY_CHEETAH_LL || meta.policy == POLICY_CCLB4)) {
                tree_op = TREE_ADD;
            } else if (!IS_CHECK && meta.policy == POLICY_CHEETAH_LL && hdr.tcp.isValid()
                && meta.outcome != OUTCOME_RETRIEVED_RECENT // one for each segment of the server that the client rejects
                && (hdr.tcp.flags & (TCP_FIN | TCP_RST)) != 0) {
                tree_op = TREE_SUB;
            }
        } else if (IS_CHECK) {
            meta.verdict = DROP_CHECK_NO_SERVER;
        } else if (meta.outcome == OUTCOME_HASHED_HANDSHAKE) {
            meta.sid = meta.hash_sid;
        } else if (hdr.udp.isValid() && meta.is_new_connection == 0 && (!IS_ERROR || meta.at_cookie_address == 1)) {
            meta.verdict = DROP_SERVER_GONE;
        } else if (meta.hash_found == 0) {
            meta.verdict = DROP_VIP_NO_SERVER;
        } else if (REFUSES_UNKNOWN && meta.is_new_connection == 0) {
            meta.verdict = DROP_SYN_COOKIE;
        } else {
            meta.sid = meta.hash_sid;
            if (meta.is_new_connection == 1) {
                meta.outcome = OUTCOME_ASSIGNED_FALLBACK;
                if (meta.can_carry_cookie == 1) {
                    meta.outcome = OUTCOME_ASSIGNED_NO_LOAD;
                }
            } else {
                meta.outcome = OUTCOME_HASHED_NO_COOKIE;
                if (meta.can_carry_cookie == 1) {
                    meta.outcome = OUTCOME_HASHED_BAD_COOKIE;
                }
            }
        }

        if (hdr.udp.isValid() && (meta.outcome == OUTCOME_RETRIEVED_HANDSHAKE || meta.connection.is_new_entry == 1)) {
            meta.connection.sid = meta.sid;
            handshake_sids.apply(meta.connection);
            meta.sid = meta.connection.sid;
        }
        if (tree_op != TREE_NONE) {
            tree_change.apply(meta, tree_op);
        }
    }
}
