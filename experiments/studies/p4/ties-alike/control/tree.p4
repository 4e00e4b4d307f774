// SPDX-License-Identifier: Apache-2.0
// The tournament tree (p4src/control/tree.p4) without random tie-breaking: all switches choose the server in the lowest slot among equal scores.
control Tournament(inout tree_t tree) {
    TreeLeaf() leaf;
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
        bit<16> slot = tree.slot;
        if (tree.op != TREE_NONE) {
            tree.tie_break = 0;
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
