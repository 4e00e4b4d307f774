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
        if (tree.op != TREE_NONE) {
            tree.tie_break = 0;
            leaf.apply(tree);
            level1.apply(tree);
            level2.apply(tree);
            level3.apply(tree);
            level4.apply(tree);
            level5.apply(tree);
            level6.apply(tree);
            level7.apply(tree);
            level8.apply(tree);
            level9.apply(tree);
            level10.apply(tree);
            level11.apply(tree);
            level12.apply(tree);
        }
    }
}
