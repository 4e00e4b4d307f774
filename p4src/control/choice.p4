// The server of a client's packet: the one that the policy, the packet or the handshake table names, if it is one of this VIP's; else that of TCP's
// connection table, or of the hash. What is chosen may have to be told, which takes a second pass.
control Choice(in headers_t hdr, inout metadata_t meta) {
    bit<8> tree_op;

    // A server of this VIP, active or draining.
    action set_member(bit<16> slot, bit<1> active) {
        meta.slot = slot;
        meta.active = active;
    }

    table member {
        key = {
            meta.vip_id: exact @name("vip_id");
            meta.named: exact @name("sid");
        }
        actions = { set_member; NoAction; }
        const default_action = NoAction();
        size = SERVERS;
    }

    action pass_again(bit<8> tell_tree, bit<8> tell_handshakes) {
        meta.again = 1;
        meta.second_pass = 1;
        meta.pass_tree = tell_tree;
        meta.pass_connection = tell_handshakes;
        meta.pass_slot = meta.slot;
        meta.pass_sid = meta.sid;
        meta.pass_outcome = meta.outcome;
    }

    apply {
        if (meta.is_named == 1) {
            if (!member.apply().hit || (meta.begins == 1 && meta.active == 0)) {
                meta.is_named = 0;
            }
        }

        meta.sid = meta.named;
        if (hdr.tcp.isValid() && meta.begins == 0 && meta.connection.done == 1) {
            meta.sid = meta.connection.sid;
            meta.outcome = OUTCOME_RETRIEVED_TABLE;
        } else if (meta.is_named == 1) {
            tree_op = TREE_NONE;
            if (meta.begins == 1 && meta.tree.best != 0) {
                tree_op = TREE_ADD;
            } else if (meta.policy == POLICY_CHEETAH_LL && hdr.tcp.isValid() && (hdr.tcp.flags & (TCP_FIN | TCP_RST)) != 0) {
                tree_op = TREE_SUB;
            }
            if (meta.begins == 1 && hdr.udp.isValid()) {
                pass_again(tree_op, CONNECTION_JOIN);
            } else if (tree_op != TREE_NONE) {
                pass_again(tree_op, CONNECTION_NONE);
            }
        } else if (hdr.udp.isValid() && meta.begins == 0) {
            if (meta.outcome == OUTCOME_RETRIEVED_HANDSHAKE) {
                pass_again(TREE_NONE, CONNECTION_RELEASE); // so that the client's next attempt is assigned anew
            } else {
                meta.drop = DROP_SERVER_GONE;
            }
        } else if (meta.is_hashed == 0) {
            meta.drop = DROP_VIP_NO_SERVER;
        } else {
            meta.sid = meta.hashed;
            if (meta.begins == 1) {
                meta.outcome = OUTCOME_ASSIGNED_FALLBACK;
                if (meta.can_carry == 1) {
                    meta.outcome = OUTCOME_ASSIGNED_NO_LOAD;
                }
            } else {
                meta.outcome = OUTCOME_HASHED_NO_COOKIE;
                if (meta.can_carry == 1) {
                    meta.outcome = OUTCOME_HASHED_BAD_COOKIE;
                }
            }
            if (hdr.udp.isValid()) {
                pass_again(TREE_NONE, CONNECTION_JOIN);
            }
        }
    }
}

// In the second pass, what the first one chose; but a handshake goes where the table says that it goes.
control Recall(in headers_t hdr, inout metadata_t meta) {
    apply {
        meta.sid = meta.pass_sid;
        meta.outcome = meta.pass_outcome;
        if (meta.pass_connection == CONNECTION_RELEASE) {
            meta.drop = DROP_SERVER_GONE;
        } else if (meta.pass_connection == CONNECTION_JOIN) {
            if (meta.connection.done == 0) {
                meta.sid = meta.hashed;
                meta.outcome = OUTCOME_HASHED_HANDSHAKE;
            } else if (meta.connection.taken == 0) {
                meta.sid = meta.connection.sid; // another packet of it was here between the two passes
                meta.outcome = OUTCOME_RETRIEVED_HANDSHAKE;
            }
        }
    }
}
