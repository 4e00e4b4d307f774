// SPDX-License-Identifier: Apache-2.0
// The tournament trees: each finds the active server of its VIP with the lowest score, exactly, with one register access
// per level and without a loop over servers. The architecture decides where they are (v1model/tree.p4, tna/tree.p4).
//
//               root: level `depth`                A leaf holds the headroom (16) and the SID of its server. Headroom
//              /                   \               is 0xffff - score; zero means that the slot has no active server.
//          node                     node  level 1  What goes up from a leaf is headroom (16) | tie (4) | SID (12). A node
//         /    \                   /    \          holds the largest values of its two children. An update writes a
//     leaf      leaf           leaf      leaf      leaf, and at each level on the way up its half of the node, and
//   slot base                      slot base + 3   passes on the larger half. So the root always holds the best server of
//                                                  its VIP, and a SYN reads only the root.
//
// A report that repeats the server's last one changes nothing. Four bits of the hash of the packet's connection decide
// between equal scores: every switch sees other connections, and with a fixed rule, all switches would send their next
// connection to the same server. With v1model, each packet decides at every node that it passes, and the tie bits of a
// value are zero. A stateful ALU of Tofino compares one value only, so there the leaf's last update sets the tie bits.
//
// After a restart of the switch every leaf is zero. A VIP then has no best server until servers report or the
// controller seeds the leaves; until then, consistent hashing serves it. Levels above `depth` join different VIPs and
// are not used. The number of levels limits the number of servers of a VIP.
control Tournament(inout tournament_t tree) {
    TreeLeaf() leaf;
    TreeLevel(1, TREE_SLOTS >> 1) level1;
    TreeLevel(2, TREE_SLOTS >> 2) level2;
    TreeLevel(3, TREE_SLOTS >> 3) level3;
    TreeLevel(4, TREE_SLOTS >> 4) level4;
    TreeLevel(5, TREE_SLOTS >> 5) level5;
    TreeLevel(6, TREE_SLOTS >> 6) level6;
    TreeLevel(7, TREE_SLOTS >> 7) level7;
#if TREE_LEVELS > 7
    TreeLevel(8, TREE_SLOTS >> 8) level8;
    TreeLevel(9, TREE_SLOTS >> 9) level9;
    TreeLevel(10, TREE_SLOTS >> 10) level10;
#endif
#if TREE_LEVELS > 10
    TreeLevel(11, TREE_SLOTS >> 11) level11;
    TreeLevel(12, TREE_SLOTS >> 12) level12;
#endif

    apply {
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
#if TREE_LEVELS > 7
            level8.apply(tree, 8w0 ++ slot[15:8], slot[7:7]);
            level9.apply(tree, 9w0 ++ slot[15:9], slot[8:8]);
            level10.apply(tree, 10w0 ++ slot[15:10], slot[9:9]);
#endif
#if TREE_LEVELS > 10
            level11.apply(tree, 11w0 ++ slot[15:11], slot[10:10]);
            level12.apply(tree, 12w0 ++ slot[15:12], slot[11:11]);
#endif
        }
    }
}
