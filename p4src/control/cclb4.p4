// SPDX-License-Identifier: Apache-2.0
// CCLB4, the stateless load-aware layer-4 load balancer (CloudCookie, section IV.B), in its four phases. Retrieving
// and insighting read the packet (reading.p4), assigning chooses a server, and reacting rewrites the packet: here
// towards the server, in masking.p4 towards the client.
//
// A packet passes ingress twice if the server has to be chosen before state is written, because each register is
// accessed once per pass. The first pass chooses the server; the second updates the state. These packets pass twice:
//
//     a first packet under a load-aware policy     the second pass updates the server's leaf of the tree; if the switch
//                                                  answered the SYN, this is the client's acknowledgment
//     a FIN or RST under cheetah-ll                the second pass subtracts the connection from the server's leaf
//     a packet of a QUIC handshake, server gone    the second pass removes the entry of the handshake table, so that the
//                                                  client's next attempt is assigned anew, and drops the packet
//
// On Tofino, only the last one does (tna/tree.p4).
control Cclb4(inout headers_t hdr, inout metadata_t meta) {
    Handshake() handshake;
    HandshakeOutcome() handshake_outcome;
    SecondHop() second_hop;
    Fallback() fallback;
    Recent() recent;
    SecondHopMark() second_hop_mark;
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

    action read_tie_break() {
        IN_HASH { meta.tree.tie_break = meta.connection_hash[19:16]; }
    }

    action read_root() {
        meta.reads_root = 1;
        meta.tree.op = TREE_READ;
        meta.tree.slot = meta.tree_base;
    }

    action use_assigned() {
        meta.candidate_found = meta.is_assigned;
        meta.candidate_sid = meta.assigned_sid;
        meta.outcome = meta.assigned_outcome;
    }

    action release_handshake() {
        meta.verdict = VERDICT_RESUBMIT;
        meta.second_pass = 1;
        meta.releases_handshake = 1;
    }

    apply {
        meta.tree.depth = meta.tree_depth;
        read_tie_break();
        if (meta.direction == Direction.CONTROLLER) {
            read_packet_out();
        }

        // Look up the connection.
        bit<1> has_handshake = 0;
        if (hdr.tcp.isValid()) {
            if (!IS_CHECK && meta.second_pass == 0) {
                second_hop.apply(hdr, meta);
                fallback.apply(hdr, meta);
            }
        } else if (!IS_CHECK && hdr.udp.isValid() && meta.direction == Direction.UP && meta.at_cookie_address == 0
            && (meta.second_pass == 0 || meta.releases_handshake == 1)) {
            has_handshake = 1;
            handshake.apply(hdr, meta);
        }

        if (!IS_CHECK && meta.second_pass == 0) {
            recent.apply(hdr, meta);
        }

        // Update or read the tree.
        if (!IS_CHECK && meta.direction == Direction.UP && meta.second_pass == 0
            && (meta.is_new_connection == 1 || hdr.quic_long.isValid()) && meta.can_carry_cookie == 1
            && (meta.policy == POLICY_CHEETAH_LL || meta.policy == POLICY_CCLB4)) {
            read_root();
        }
        tree.apply(meta);

        // Choose the server. The policy need not wait until it is known whether a sealed cookie names one.
        if (meta.direction == Direction.UP && meta.second_pass == 0 && meta.can_carry_cookie == 1
            && (meta.is_new_connection == 1 || meta.connection.is_new_entry == 1)) {
            assign.apply(meta);
        }
        if (has_handshake == 1) {
            handshake_outcome.apply(hdr, meta);
        }
        if (meta.direction == Direction.UP && meta.verdict == VERDICT_CONTINUE && meta.COOKIE_VERDICT == VERDICT_CONTINUE) {
            if (meta.second_pass == 1) {
                resume.apply(meta);
            } else {
                if (meta.is_new_connection == 1 && meta.can_carry_cookie == 1) {
                    use_assigned();
                }
                choice.apply(hdr, meta);
            }
            if (hdr.tcp.isValid()) {
                second_hop_mark.apply(hdr, meta);
            }
            if (meta.verdict == VERDICT_CONTINUE && !ANSWERS_SYN) {
                server.apply(hdr, meta);
                if (meta.verdict == DROP_SERVER_GONE && meta.outcome == OUTCOME_RETRIEVED_HANDSHAKE && !IS_ERROR) {
                    release_handshake();
                }
            }
        }
    }
}
