// SPDX-License-Identifier: Apache-2.0
// The tournament tree (p4src/control/tree.p4) with ageing: a leaf without new reports loses an eighth of its score at each visit. An old report
// thus counts less and less, until the server looks idle enough to get a flow, whose packets then report its loads. Servers with flows through
// this switch report with each packet and hardly age. One in 2^AGE_SHIFT of the packets that do not use the tree visits a leaf, each the next one.
// Only the leaves of the first VIP age, because a simulation has a single VIP.
const bit<8> TREE_AGE = 7;

#ifndef AGE_SHIFT
#define AGE_SHIFT 4
#endif

control Sweep(inout tree_t tree) {
    register<bit<32>>(1) visits;

    apply {
        bit<32> visit;
        visits.read(visit, 0);
        visits.write(0, visit + 1);
        if ((visit & ((32w1 << AGE_SHIFT) - 1)) == 0) {
            tree.op = TREE_AGE;
            tree.slot = (bit<16>)(visit >> AGE_SHIFT) & ((16w1 << tree.depth) - 1);
        }
    }
}

// TreeLeaf with the operation TREE_AGE.
control AgeingLeaf(inout tree_t tree) {
    register<bit<32>>(TREE_SLOTS) leaves;

    apply {
        bit<32> leaf;
        leaves.read(leaf, (bit<32>)tree.slot);
        bit<16> headroom = leaf[31:16];
        if (tree.op == TREE_SET) {
            headroom = 16w0xffff |-| tree.score;
            if (headroom == 0) {
                headroom = 1;
            }
        } else if (tree.op == TREE_ADD && headroom != 0) {
            headroom = headroom |-| tree.score;
            if (headroom == 0) {
                headroom = 1;
            }
        } else if (tree.op == TREE_SUB && headroom != 0) {
            headroom = headroom |+| tree.score;
        } else if (tree.op == TREE_SEED && (headroom == 0 || leaf[15:0] != tree.sid)) {
            headroom = 0xffff;
        } else if (tree.op == TREE_CLEAR) {
            headroom = 0;
        } else if (tree.op == TREE_AGE && headroom != 0) {
            headroom = headroom + ((16w0xffff - headroom) >> 3);
            tree.sid = leaf[15:0];
        }
        if (tree.op != TREE_READ) {
            leaf = headroom ++ tree.sid;
            if (headroom == 0) {
                leaf = 0;
            }
            leaves.write((bit<32>)tree.slot, leaf);
        }
        tree.best = headroom ++ 4w0 ++ leaf[11:0];
    }
}

control Tournament(inout tree_t tree) {
    Sweep() sweep;
    AgeingLeaf() leaf;
    TreeLevel(1, TREE_SLOTS >> 1) level1;
    TreeLevel(2, TREE_SLOTS >> 2) level2;
    TreeLevel(3, TREE_SLOTS >> 3) level3;
    TreeLevel(4, TREE_SLOTS >> 4) level4;
    TreeLevel(5, TREE_SLOTS >> 5) level5;
    TreeLevel(6, TREE_SLOTS >> 6) level6;
    TreeLevel(7, TREE_SLOTS >> 7) level7;
    TreeLevel(8, TREE_SLOTS >> 8) level8;
    TreeLevel(9, TREE_SLOTS >> 9) level9;
    TreeLevel(10, TREE_SLOTS >> 10) level10;
    TreeLevel(11, TREE_SLOTS >> 11) level11;
    TreeLevel(12, TREE_SLOTS >> 12) level12;

    apply {
        if (tree.op == TREE_NONE) {
            sweep.apply(tree);
        }
        bit<16> slot = tree.slot;
        if (tree.op != TREE_NONE) {
            leaf.apply(tree);
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
        }
    }
}
