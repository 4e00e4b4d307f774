// CCLB4, the stateless load-aware layer-4 load balancer (CloudCookie, section IV.B), in its four phases: retrieving and insighting listen to the packet,
// assigning chooses, reacting rewrites it (here towards the server; masking.p4 towards the client). What begins a flow whose policy follows loads passes
// twice, because the tree is read at its root before the leaf to be written is known: the first pass chooses, the second tells the tree and sends. So
// do the end of a flow under cheetah-ll, and a first Initial, which takes its place in the handshake table in the second pass.
control Cclb4(inout headers_t hdr, inout metadata_t meta) {
    Retrieve() retrieve;
    Insight() insight;
    Handshake() handshake;
    Maglev() maglev;
    Fallback() fallback;
    Tree() tree;
    Assign() assign;
    Choice() choice;
    Recall() recall;
    Server() server;

    // The controller, too, may tell the tree something.
    action listen_to_controller() {
        meta.tree.op = hdr.packet_out.op;
        meta.tree.depth = hdr.packet_out.depth;
        meta.tree.slot = hdr.packet_out.slot;
        meta.tree.sid = hdr.packet_out.sid;
        meta.tree.score = hdr.packet_out.score;
    }

    action read_root() {
        meta.tree.op = TREE_READ;
        meta.tree.slot = meta.tree_base;
    }

    action tell_choice() {
        meta.tree.op = meta.pass_tree;
        meta.tree.slot = meta.pass_slot;
        meta.tree.sid = meta.pass_sid;
        meta.tree.score = meta.flow_unit;
    }

    apply {
        if (hdr.tcp.isValid() && (hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
            meta.begins = 1;
        }
        if (hdr.tcp_timestamp.isValid() || hdr.udp.isValid()) {
            meta.can_carry = 1;
        }
        meta.tree.depth = meta.tree_depth;
        meta.tree.coins = meta.connection_hash[31:16];

        // What the packet says: a client's, which server it belongs to; a server's, how loaded it is.
        if (meta.direction == Direction.CONTROLLER) {
            listen_to_controller();
        } else if (meta.second_pass == 0) {
            if (meta.direction == Direction.DOWN) {
                insight.apply(hdr, meta);
            } else if (meta.begins == 0) {
                retrieve.apply(hdr, meta);
            }
        }

        // What is remembered of its connection, or of its hash alone.
        if (hdr.udp.isValid() && meta.direction == Direction.UP && meta.drop == DROP_NONE && meta.at_cookie_address == 0) {
            handshake.apply(hdr, meta);
        }
        if (meta.direction == Direction.UP && (hdr.tcp.isValid() || meta.begins == 1 || meta.second_pass == 1)) {
            maglev.apply(meta);
        }
        if (hdr.tcp.isValid() && meta.second_pass == 0) {
            fallback.apply(hdr, meta);
        }

        // What the tree is told, or asked.
        if (meta.direction == Direction.UP) {
            if (meta.second_pass == 1) {
                if (hdr.tcp.isValid() || meta.connection.taken == 1) {
                    tell_choice();
                }
            } else if (meta.begins == 1 && meta.can_carry == 1 && (meta.policy == POLICY_CHEETAH_LL || meta.policy == POLICY_CCLB4)) {
                read_root();
            }
        }
        tree.apply(meta.tree);

        // Where the packet goes.
        if (meta.direction == Direction.UP && meta.drop == DROP_NONE) {
            if (meta.second_pass == 1) {
                recall.apply(hdr, meta);
            } else {
                if (meta.begins == 1 && meta.can_carry == 1) {
                    assign.apply(meta);
                }
                choice.apply(hdr, meta);
            }
            if (meta.again == 0 && meta.drop == DROP_NONE) {
                server.apply(hdr, meta);
            }
        }
    }
}
