// The least-loaded active server of a VIP, exactly, with one register access a level and no loop over servers.
//
//                   root: level `depth`                    A leaf holds headroom (16) | SID (16), where headroom is 0xffff - score
//                  /                   \                   and zero means: no server here. A node holds what came up from both
//            node                       node    level 1    of its children. An update writes a leaf, and at each level on the way
//           /    \                     /    \              up its half of the node, and hands on the larger of the two. So the
//       leaf      leaf             leaf      leaf          root always holds the best of its VIP, and a SYN reads only that.
//     slot base                          slot base + 3
//
// Between equals decides a coin, a bit of the hash of the connection whose packet comes by. Each switch has other connections; if all chose alike, all would send their next
// flow to the same server.
//
// After a restart of the switch every leaf is zero: the VIP has no best until servers report or the controller seeds them, and
// consistent hashing serves it meanwhile. Levels above `depth` join different VIPs and are not touched.
control Tree(inout tree_t tree) {
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
