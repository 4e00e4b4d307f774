// SPDX-License-Identifier: Apache-2.0
// Envoy's weighted least request for servers of unequal weights (its classes LeastRequestLoadBalancer and EdfScheduler) instead of the tournament
// trees (p4src/control/tree.p4), with their slots and entries. For servers of equal weights, Envoy uses the power of two choices (../two-choices).
//
// Each server has a deadline in virtual time. A connection goes to the server with the earliest deadline. Virtual time becomes that deadline, and
// the server's next deadline is later by 1/w, where w = weight / (active requests + 1): Envoy's formula with an active_request_bias of 1. With the
// policy cclb4-current, a score is proportional to active flows / weight, so 1/w is the score plus that of one flow at this server. Reports change
// the score alone. Between them, the switch counts the connections that it assigns.
//
// No entry has the score of one flow. A server's smallest score above zero is taken for it, and FLOW until a report has a smaller one.
//
// Trees of deadlines find the earliest one. Deadlines are compared modulo 2^15. An addition is less than half of that, so more than 1,000 flows at
// the lightest server count as about 1,000.
#define FLOW 16w16 // the score of a flow at the lightest server of a VIP, FLOW_UNIT of the controller
#define MAX_ADDITION 16w0x3fff

// Returns the earlier one of two servers: valid (1) | deadline (15) | tie (4) | SID (12); zero for none.
control Earlier(in bit<32> a, in bit<32> b, out bit<32> first) {
    apply {
        bit<15> lead = b[30:16] - a[30:16];
        first = b;
        if (a[31:31] == 1) {
            if (b[31:31] == 0 || (lead != 0 && lead[14:14] == 0) || (lead == 0 && a[15:0] > b[15:0])) {
                first = a;
            }
        }
    }
}

// Returns what a leaf sends up after an operation. A server gets a deadline when it becomes active, and a later one when it gets a connection.
control DeadlineLeaf(inout tree_t tree, in bit<15> now) {
    register<bit<64>>(TREE_SLOTS) loads; // unused (16) | SID (16) | score of one flow, if it is less than FLOW (16) | score (16)
    register<bit<32>>(TREE_SLOTS) leaves;

    apply {
        bit<64> load;
        loads.read(load, (bit<32>)tree.slot);
        leaves.read(tree.best, (bit<32>)tree.slot);
        bit<1> is_active = tree.best[31:31];
        bit<1> is_late = 0; // the deadline is due
        bit<16> flow = load[31:16];
        bit<16> score = load[15:0];
        if (load[47:32] != tree.sid) {
            flow = 0;
            is_active = 0;
        }
        if (flow == 0) {
            flow = FLOW;
        }
        if (is_active == 0) {
            score = 0;
        }

        if (tree.op == TREE_SET) {
            score = tree.score;
            if (score != 0 && score < flow) {
                flow = score;
            }
            is_late = ~is_active;
        } else if (tree.op == TREE_SEED) {
            is_late = ~is_active;
        } else if (tree.op == TREE_ADD) {
            is_late = is_active;
        } else if (tree.op == TREE_SUB) {
            score = score |-| flow;
        }
        bit<16> addition = score |+| flow;
        if (addition > MAX_ADDITION) {
            addition = MAX_ADDITION;
        }

        if (tree.op != TREE_READ) {
            if (tree.op == TREE_CLEAR) {
                tree.best = 0;
            } else if (is_late == 1) {
                tree.best = 1w1 ++ (now + addition[14:0]) ++ tree.tie_break ++ tree.sid[11:0];
            } else {
                tree.depth = 0; // no news for the nodes above
            }
            if (tree.op == TREE_ADD) {
                score = score |+| flow;
            }
            loads.write((bit<32>)tree.slot, 16w0 ++ tree.sid ++ flow ++ score);
            leaves.write((bit<32>)tree.slot, tree.best);
        }
    }
}

// One level of nodes above the leaves, as in the shipped tree. Returns the earlier child in tree.best.
control DeadlineLevel(inout tree_t tree, in bit<16> number, in bit<1> child)(bit<8> level, bit<32> nodes) {
    register<bit<64>>(nodes) children;
    Earlier() earlier;

    apply {
        bit<64> pair;
        if (tree.depth >= level && (tree.op != TREE_READ || tree.depth == level)) {
            children.read(pair, (bit<32>)number);
            if (tree.op != TREE_READ) {
                if (child == 1) {
                    pair = pair[63:32] ++ tree.best;
                } else {
                    pair = tree.best ++ pair[31:0];
                }
                children.write((bit<32>)number, pair);
            }
            earlier.apply(pair[63:32], pair[31:0], tree.best);
        }
    }
}

control Tournament(inout tournament_t tree) {
    register<bit<16>>(TREE_SLOTS) clocks; // virtual time, by the first slot of a VIP
    DeadlineLeaf() leaf;
    DeadlineLevel(1, TREE_SLOTS >> 1) level1;
    DeadlineLevel(2, TREE_SLOTS >> 2) level2;
    DeadlineLevel(3, TREE_SLOTS >> 3) level3;
    DeadlineLevel(4, TREE_SLOTS >> 4) level4;
    DeadlineLevel(5, TREE_SLOTS >> 5) level5;
    DeadlineLevel(6, TREE_SLOTS >> 6) level6;
    DeadlineLevel(7, TREE_SLOTS >> 7) level7;
    DeadlineLevel(8, TREE_SLOTS >> 8) level8;
    DeadlineLevel(9, TREE_SLOTS >> 9) level9;
    DeadlineLevel(10, TREE_SLOTS >> 10) level10;
    DeadlineLevel(11, TREE_SLOTS >> 11) level11;
    DeadlineLevel(12, TREE_SLOTS >> 12) level12;

    apply {
        bit<16> slot = tree.slot;
        bit<16> first = (slot >> tree.depth) << tree.depth;
        if (tree.op != TREE_NONE) {
            bit<16> now;
            clocks.read(now, (bit<32>)first);
            leaf.apply(tree, now[14:0]);
            level1.apply(tree, 1w0 ++ slot[15:1], slot[0:0]);
            level2.apply(tree, 2w0 ++ slot[15:2], slot[1:1]);
            level3.apply(tree, 3w0 ++ slot[15:3], slot[2:2]);
            level4.apply(tree, 4w0 ++ slot[15:4], slot[3:3]);
            level5.apply(tree, 5w0 ++ slot[15:5], slot[4:4]);
            level6.apply(tree, 6w0 ++ slot[15:6], slot[5:5]);
            level7.apply(tree, 7w0 ++ slot[15:7], slot[6:6]);
            level8.apply(tree, 8w0 ++ slot[15:8], slot[7:7]);
            level9.apply(tree, 9w0 ++ slot[15:9], slot[8:8]);
            level10.apply(tree, 10w0 ++ slot[15:10], slot[9:9]);
            level11.apply(tree, 11w0 ++ slot[15:11], slot[10:10]);
            level12.apply(tree, 12w0 ++ slot[15:12], slot[11:11]);
            if (tree.op == TREE_READ && tree.best[31:31] == 1) {
                clocks.write((bit<32>)first, 1w0 ++ tree.best[30:16]);
            }
        }
    }
}
