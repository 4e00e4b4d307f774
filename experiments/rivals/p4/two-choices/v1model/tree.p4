// SPDX-License-Identifier: Apache-2.0
// The power of two choices (Mitzenmacher, IEEE Transactions on Parallel and Distributed Systems, 2001) instead of the tournament trees
// (p4src/v1model/tree.p4), with their leaves and entries. A connection goes to the one with the lower score of two random servers of its VIP.
//
// Slots without an active server are drawn again, in at most eight draws. Both draws may name the same server. Equal scores: the first one.
#ifndef FRONTAGE_V1MODEL_TREE_P4
#define FRONTAGE_V1MODEL_TREE_P4

// Compares a drawn server (headroom (16) | SID (16); zero: none) with the one that was drawn before.
control Contest(in bit<32> server, inout bit<2> drawn, inout bit<32> best) {
    apply {
        if (server[31:16] != 0 && drawn < 2) {
            if (drawn == 0 || server[31:16] > best[31:16]) {
                best = server;
            }
            drawn = drawn + 1;
        }
    }
}

control Tree(inout metadata_t meta) {
    TreeLeaf() leaf;
    register<bit<32>>(TREE_SLOTS) servers; // what a leaf sends up
    Contest() contest;
    bit<32> random_state;
    bit<32> server;
    bit<2> drawn;

    // Reads a random slot. The upper bits of a linear congruential generator, seeded with the connection's hash, select it:
    // unlike those of `random`, a model can compute these draws, and a repeated SYN repeats them.
    action draw() {
        random_state = random_state * 1664525 + 1013904223;
        servers.read(server, (bit<32>)meta.tree_base + (random_state >> (32 - meta.tree_depth)));
    }

    action update() {
        meta.tree.op = meta.resubmit_tree_op;
        meta.tree.slot = meta.resubmit_slot;
        meta.tree.sid = meta.resubmit_sid;
        meta.tree.score = meta.flow_unit;
    }

#define DRAW draw(); contest.apply(server, drawn, meta.tree.best);

    apply {
        if (meta.second_pass == 1) {
            update();
        }
        if (meta.tree.op == TREE_READ) {
            random_state = meta.connection_hash;
            drawn = 0;
            meta.tree.best = 0;
            DRAW DRAW DRAW DRAW DRAW DRAW DRAW DRAW
        } else if (meta.tree.op != TREE_NONE) {
            leaf.apply(meta.tree);
            servers.write((bit<32>)meta.tree.slot, meta.tree.best);
        }
    }
}

// As in the shipped program
control TreeChange(inout metadata_t meta, in bit<8> tree_op) {
    apply {
        meta.verdict = VERDICT_RESUBMIT;
        meta.second_pass = 1;
        meta.resubmit_tree_op = tree_op;
        meta.resubmit_slot = meta.slot;
        meta.resubmit_sid = meta.sid;
        meta.resubmit_outcome = meta.outcome;
    }
}

control Resume(inout metadata_t meta) {
    apply {
        meta.sid = meta.resubmit_sid;
        meta.outcome = meta.resubmit_outcome;
    }
}

#endif
