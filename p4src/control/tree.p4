// SPDX-License-Identifier: Apache-2.0
// The tournament trees: each finds the active server of its VIP with the lowest score, exactly, with one register access
// per level and without a loop over servers. The architecture decides where they are (v1model/tree.p4, tna/tree.p4).
//
//               root: level `depth`                A leaf holds headroom (16) | SID (16). Headroom is 0xffff - score;
//              /                   \               zero means that the slot has no active server. A node holds the
//          node                     node  level 1  winners of its two children. An update writes a leaf; at each level
//         /    \                   /    \          on the way up it writes its half of the node and passes on the
//     leaf      leaf           leaf      leaf      winner. So the root always holds the best server of its VIP, and a
//   slot base                      slot base + 3   SYN reads only the root.
//
// Ties are broken by one bit per level of the hash of the connection whose packet updates the tree. Every switch sees
// other connections: with a fixed rule, all switches would send their next connection to the same server.
//
// After a restart of the switch every leaf is zero. A VIP then has no best server until servers report or the
// controller seeds the leaves; until then, consistent hashing serves it. Levels above `depth` join different VIPs and
// are not used.
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
#ifndef TREE_ROOTS_APART
    TreeLevel(12, TREE_SLOTS >> 12) level12;
#endif

    apply {
        if (tree.op != TREE_NONE) {
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
#ifndef TREE_ROOTS_APART
            level12.apply(tree);
#endif
        }
    }
}
