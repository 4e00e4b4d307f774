// CCLB4, the stateless load-aware layer-4 load balancer (CloudCookie, section IV.B), in its four phases. A SYN whose policy follows loads
// passes twice, because the tree is read at its root before the leaf to be written is known: the first pass
// chooses, the second tells the tree and sends. So does the end of a flow under cheetah-ll. The controller, too, may tell the tree something.
control Cclb4(inout headers_t hdr, inout metadata_t meta) {
    Insight() insight;
    Tree() tree;
    Fallback() fallback;
    Assign() assign;
    Retrieve() retrieve;
    Server() server;

    bit<1> syn;
    bit<1> can_carry;
    sid_t hashed;
    bit<1> hash_found;
    sid_t candidate;
    bit<1> is_candidate;

    // A server of this VIP, active or draining.
    action is_member(bit<16> slot, bit<1> active) {
        meta.slot = slot;
        meta.active = active;
    }

    table member {
        key = {
            meta.vip_id: exact @name("vip_id");
            candidate: exact @name("sid");
        }
        actions = { is_member; NoAction; }
        const default_action = NoAction();
        size = SERVERS;
    }

    action pass_again(bit<8> op) {
        meta.again = 1;
        meta.pass_op = op;
        meta.pass_slot = meta.slot;
        meta.pass_sid = meta.sid;
        meta.pass_outcome = meta.outcome;
    }

    apply {
        syn = 0;
        can_carry = 0;
        candidate = 0;
        is_candidate = 0;
        if (hdr.tcp.isValid() && (hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
            syn = 1;
        }
        if (hdr.tcp_timestamp.isValid()) {
            can_carry = 1;
        }

        // What this packet tells the tree, or asks it.
        meta.tree.depth = meta.tree_depth;
        if (meta.direction == Direction.CONTROLLER) {
            meta.tree.op = hdr.packet_out.op;
            meta.tree.depth = hdr.packet_out.depth;
            meta.tree.slot = hdr.packet_out.slot;
            meta.tree.sid = hdr.packet_out.sid;
            meta.tree.score = hdr.packet_out.score;
        } else if (meta.direction == Direction.DOWN) {
            insight.apply(hdr, meta);
        } else if (meta.pass_op != TREE_NONE) {
            meta.tree.op = meta.pass_op;
            meta.tree.slot = meta.pass_slot;
            meta.tree.sid = meta.pass_sid;
            meta.tree.score = meta.flow_unit;
        } else if (syn == 1 && can_carry == 1 && (meta.policy == POLICY_CHEETAH_LL || meta.policy == POLICY_CCLB4)) {
            meta.tree.op = TREE_READ;
            meta.tree.slot = meta.tree_base;
        }
        tree.apply(meta.tree);

        // What it tells the connection table, or asks it.
        if (meta.direction == Direction.UP && meta.pass_op == TREE_NONE) {
            if (syn == 0) {
                meta.connection.op = CONNECTION_LOOKUP;
            } else if (can_carry == 1) {
                meta.connection.op = CONNECTION_RELEASE;
            } else {
                meta.connection.op = CONNECTION_CLAIM;
            }
        }
        fallback.apply(meta, hashed, hash_found);

        if (meta.direction == Direction.UP) {
            if (meta.pass_op != TREE_NONE) {
                meta.sid = meta.pass_sid;
                meta.outcome = meta.pass_outcome;
            } else {
                // The server that the policy or the cookie names, if it is one of this VIP's ...
                if (syn == 1 && can_carry == 1) {
                    assign.apply(meta, hashed, hash_found, candidate, is_candidate);
                } else if (can_carry == 1) {
                    retrieve.apply(hdr, meta, candidate, is_candidate);
                    meta.outcome = OUTCOME_RETRIEVED_COOKIE;
                }
                if (is_candidate == 1) {
                    if (!member.apply().hit || (syn == 1 && meta.active == 0)) {
                        is_candidate = 0;
                    }
                }

                // ... else the one of the connection table or of the hash.
                meta.sid = candidate;
                if (syn == 0 && meta.connection.done == 1) {
                    meta.sid = meta.connection.sid;
                    meta.outcome = OUTCOME_RETRIEVED_TABLE;
                    is_candidate = 0;
                } else if (is_candidate == 0) {
                    meta.sid = hashed;
                    if (hash_found == 0) {
                        meta.drop = DROP_VIP_NO_SERVER;
                    }
                    if (syn == 1) {
                        meta.outcome = OUTCOME_ASSIGNED_FALLBACK;
                        if (can_carry == 1) {
                            meta.outcome = OUTCOME_ASSIGNED_NO_LOAD;
                        }
                    } else {
                        meta.outcome = OUTCOME_HASHED_NO_COOKIE;
                        if (can_carry == 1) {
                            meta.outcome = OUTCOME_HASHED_BAD_COOKIE;
                        }
                    }
                }

                if (is_candidate == 1) {
                    if (syn == 1 && meta.tree.best != 0) {
                        pass_again(TREE_ADD);
                    } else if (meta.policy == POLICY_CHEETAH_LL && (hdr.tcp.flags & (TCP_FIN | TCP_RST)) != 0) {
                        pass_again(TREE_SUB);
                    }
                }
            }
            if (meta.again == 0 && meta.drop == DROP_NONE) {
                server.apply(hdr, meta);
            }
        }
    }
}
