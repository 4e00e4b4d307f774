// SPDX-License-Identifier: Apache-2.0
// The tournament trees are in ingress. A packet that reads a tree passes a second time to update it.
#ifndef FRONTAGE_V1MODEL_TREE_P4
#define FRONTAGE_V1MODEL_TREE_P4

control Tree(inout metadata_t meta) {
    Tournament() tournament;

    apply {
        tournament.apply(meta.tree);
    }
}

// Requests a second pass, which changes what the choice of a server depended on.
control StateChange(inout metadata_t meta, in bit<8> tree_op, in bit<8> connection_op) {
    apply {
        meta.verdict = VERDICT_RESUBMIT;
        meta.second_pass = 1;
        meta.resubmit_tree_op = tree_op;
        meta.resubmit_connection_op = connection_op;
        meta.resubmit_slot = meta.slot;
        meta.resubmit_sid = meta.sid;
        meta.resubmit_outcome = meta.outcome;
    }
}

#endif
