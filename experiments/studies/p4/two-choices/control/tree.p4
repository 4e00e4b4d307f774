// SPDX-License-Identifier: Apache-2.0
// The power of two choices (Mitzenmacher, 2001) instead of the tournament tree: a flow goes to the less loaded of two random servers. The leaves are
// in two identical registers, because a packet can access each register only once.
control Tournament(inout tree_t tree) {
    TreeLeaf() leaf;
    TreeLeaf() copy;

    apply {
        tree_t other = tree;
        if (tree.op == TREE_READ) {
            bit<16> offset;
            random(offset, 0, (16w1 << tree.depth) - 1);
            tree.slot = tree.slot + offset;
            random(offset, 0, (16w1 << tree.depth) - 1);
            other.slot = other.slot + offset;
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
