// SPDX-License-Identifier: Apache-2.0
// CCLB4, the stateless load-aware layer-4 load balancer (CloudCookie, section IV.B), in its four phases. Retrieving
// and insighting read the packet (reading.p4), assigning chooses a server, and reacting rewrites the packet: here
// towards the server, in masking.p4 towards the client.
//
// A packet passes ingress twice if the server has to be chosen before state is written, because each register is
// accessed once per pass. The first pass chooses the server; the second updates the state and sends the packet. These
// packets pass twice; on Tofino, only those of QUIC do (tna/tree.p4):
//
//     a first packet under a load-aware policy     the second pass updates the server's leaf of the tree
//     a first Initial                              the second pass also claims an entry of the handshake table
//     a FIN or RST under cheetah-ll                the second pass subtracts the connection from the server's leaf
control Cclb4(inout headers_t hdr, inout metadata_t meta) {
    Handshake() handshake;
    Fallback() fallback;
    Tree() tree;
    Assign() assign;
    Choice() choice;
    Resume() resume;
    Server() server;

    // An operation on the tree from the controller.
    action read_packet_out() {
        meta.tree.op = hdr.packet_out.op;
        meta.tree.depth = hdr.packet_out.depth;
        meta.tree.slot = hdr.packet_out.slot;
        meta.tree.sid = hdr.packet_out.sid;
        meta.tree.score = hdr.packet_out.score;
    }

    action read_root() {
        meta.reads_root = 1;
        meta.tree.op = TREE_READ;
        meta.tree.slot = meta.tree_base;
    }

    action update_tree() {
        meta.tree.op = meta.resubmit_tree_op;
        meta.tree.slot = meta.resubmit_slot;
        meta.tree.sid = meta.resubmit_sid;
        meta.tree.score = meta.flow_unit;
    }

    apply {
        meta.tree.depth = meta.tree_depth;
        meta.tree.tie_break = meta.connection_hash[19:16];
        if (meta.direction == Direction.CONTROLLER) {
            read_packet_out();
        }

        // Look up the connection.
        if (hdr.tcp.isValid()) {
            if (meta.second_pass == 0) {
                fallback.apply(hdr, meta);
            }
        } else if (hdr.udp.isValid() && meta.direction == Direction.UP && meta.verdict == VERDICT_CONTINUE
            && meta.at_cookie_address == 0) {
            handshake.apply(hdr, meta);
        }

        // Update or read the tree.
        if (meta.direction == Direction.UP) {
            if (meta.second_pass == 1) {
                if (hdr.tcp.isValid() || meta.connection.is_new_entry == 1) {
                    update_tree();
                }
            } else if ((meta.is_new_connection == 1 || hdr.quic_long.isValid()) && meta.can_carry_cookie == 1
                && (meta.policy == POLICY_CHEETAH_LL || meta.policy == POLICY_CCLB4)) {
                read_root();
            }
        }
        tree.apply(meta);

        // Choose the server.
        if (meta.direction == Direction.UP && meta.verdict == VERDICT_CONTINUE) {
            if (meta.second_pass == 1) {
                resume.apply(hdr, meta);
            } else {
                if (meta.is_new_connection == 1 && meta.can_carry_cookie == 1) {
                    assign.apply(meta);
                }
                choice.apply(hdr, meta);
            }
            if (meta.verdict == VERDICT_CONTINUE) {
                server.apply(hdr, meta);
            }
        }
    }
}
