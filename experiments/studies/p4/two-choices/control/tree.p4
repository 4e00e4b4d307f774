// SPDX-License-Identifier: Apache-2.0
// The power of two choices (Mitzenmacher, 2001) in place of the tournament: a flow goes to the less loaded of two servers drawn at random. The leaves
// stand in two registers, alike, since a packet reads each but once.
control Tree(inout tree_t tree) {
    TreeLeaf() leaf;
    TreeLeaf() copy;

    apply {
        tree_t other = tree;
        if (tree.op == TREE_READ) {
            bit<16> place;
            random(place, 0, (16w1 << tree.depth) - 1);
            tree.slot = tree.slot + place;
            random(place, 0, (16w1 << tree.depth) - 1);
            other.slot = other.slot + place;
        }
        if (tree.op != TREE_NONE) {
            leaf.apply(tree);
            copy.apply(other);
            if (other.best > tree.best) {
                tree.best = other.best;
            }
        }
    }
}
