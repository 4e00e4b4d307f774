// SPDX-License-Identifier: Apache-2.0
// The tournament trees are in ingress. A packet that reads a tree passes a second time to update it.
#ifndef FRONTAGE_V1MODEL_TREE_P4
#define FRONTAGE_V1MODEL_TREE_P4

control Tree(inout metadata_t meta) {
    Tournament() tournament;

    action update() {
        meta.tree.op = meta.resubmit_tree_op;
        meta.tree.slot = meta.resubmit_slot;
        meta.tree.sid = meta.resubmit_sid;
        meta.tree.score = meta.flow_unit;
    }

    apply {
        if (meta.second_pass == 1) {
            update();
        }
        tournament.apply(meta.tree);
    }
}

// Requests a second pass, which changes the tree that the choice of a server depended on.
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

// Second pass: the packet goes to the server that the first pass chose.
control Resume(inout metadata_t meta) {
    apply {
        meta.sid = meta.resubmit_sid;
        meta.outcome = meta.resubmit_outcome;
    }
}

#endif
