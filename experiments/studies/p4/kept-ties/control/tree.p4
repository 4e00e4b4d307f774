// SPDX-License-Identifier: Apache-2.0
// The tournament tree (p4src/control/tree.p4) with the ties of Tofino: a leaf keeps the hash bits of its last update, which decide between equal
// scores, and then the SID does. The shipped tree for v1model uses the hash bits of each packet at each node.

// TreeLevel of v1model/stateful.p4, which compares whole values: headroom (16) | tie (4) | SID (12).
control KeptLevel(inout tree_t tree, in bit<16> number, in bit<1> child)(bit<8> level, bit<32> nodes) {
    register<bit<64>>(nodes) children;

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
            tree.best = pair[63:32];
            if (pair[31:0] > tree.best) {
                tree.best = pair[31:0];
            }
        }
    }
}

control Tournament(inout tree_t tree) {
    TreeLeaf() leaf;
    KeptLevel(1, TREE_SLOTS >> 1) level1;
    KeptLevel(2, TREE_SLOTS >> 2) level2;
    KeptLevel(3, TREE_SLOTS >> 3) level3;
    KeptLevel(4, TREE_SLOTS >> 4) level4;
    KeptLevel(5, TREE_SLOTS >> 5) level5;
    KeptLevel(6, TREE_SLOTS >> 6) level6;
    KeptLevel(7, TREE_SLOTS >> 7) level7;
    KeptLevel(8, TREE_SLOTS >> 8) level8;
    KeptLevel(9, TREE_SLOTS >> 9) level9;
    KeptLevel(10, TREE_SLOTS >> 10) level10;
    KeptLevel(11, TREE_SLOTS >> 11) level11;
    KeptLevel(12, TREE_SLOTS >> 12) level12;

    apply {
        bit<16> slot = tree.slot;
        if (tree.op != TREE_NONE) {
            leaf.apply(tree);
            tree.best = tree.best[31:16] ++ tree.tie_break ++ tree.best[11:0];
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
