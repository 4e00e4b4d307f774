// SPDX-License-Identifier: Apache-2.0
// Chooses the server of a client's packet. TCP's connection table comes first, then the server that the policy, the
// packet or the handshake table names, if it belongs to this VIP. The server of the hash comes last.
control Choice(in headers_t hdr, inout metadata_t meta) {
    StateChange() state_change; // tree.p4 of the architecture
    bit<8> tree_op;
    bit<8> connection_op; // on the handshake table

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
        connection_op = CONNECTION_NONE;
        if (meta.candidate_found == 1) {
            if (member.apply().miss) {
                meta.candidate_found = 0;
            } else if (meta.is_new_connection == 1 && meta.active == 0) {
                meta.candidate_found = 0;
            }
        }

        meta.sid = meta.candidate_sid;
        if (hdr.tcp.isValid() && meta.is_new_connection == 0 && meta.connection.has_entry == 1) {
            meta.sid = meta.connection.sid;
            meta.outcome = OUTCOME_RETRIEVED_TABLE;
        } else if (meta.candidate_found == 1) {
            if (meta.is_new_connection == 1 && meta.tree.best[31:16] != 0) {
                tree_op = TREE_ADD;
            } else if (meta.policy == POLICY_CHEETAH_LL && hdr.tcp.isValid()
                && (hdr.tcp.flags & (TCP_FIN | TCP_RST)) != 0) {
                tree_op = TREE_SUB;
            }
            if (meta.is_new_connection == 1 && hdr.udp.isValid()) {
                connection_op = CONNECTION_JOIN;
            }
        } else if (hdr.udp.isValid() && meta.is_new_connection == 0) {
            if (meta.outcome == OUTCOME_RETRIEVED_HANDSHAKE) {
                connection_op = CONNECTION_RELEASE; // the client's next attempt is assigned anew
            } else {
                meta.verdict = DROP_SERVER_GONE;
            }
        } else if (meta.hash_found == 0) {
            meta.verdict = DROP_VIP_NO_SERVER;
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
            if (hdr.udp.isValid()) {
                connection_op = CONNECTION_JOIN;
            }
        }

        if (tree_op != TREE_NONE || connection_op != CONNECTION_NONE) {
            state_change.apply(meta, tree_op, connection_op);
        }
    }
}

// Second pass: uses the server that the first pass chose, unless the handshake table has another one.
control Resume(in headers_t hdr, inout metadata_t meta) {
    apply {
        meta.sid = meta.resubmit_sid;
        meta.outcome = meta.resubmit_outcome;
        if (meta.resubmit_connection_op == CONNECTION_RELEASE) {
            meta.verdict = DROP_SERVER_GONE;
        } else if (meta.resubmit_connection_op == CONNECTION_JOIN) {
            if (meta.connection.has_entry == 0) {
                meta.sid = meta.hash_sid;
                meta.outcome = OUTCOME_HASHED_HANDSHAKE;
            } else if (meta.connection.is_new_entry == 0) {
                meta.sid = meta.connection.sid; // another packet of the handshake passed in between
                meta.outcome = OUTCOME_RETRIEVED_HANDSHAKE;
            }
        }
    }
}
