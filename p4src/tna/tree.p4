// SPDX-License-Identifier: Apache-2.0
// The tournament trees are in egress, and only their roots are in ingress. A tree changes as follows:
//
//     packet of a server, first packet of a connection, operation of the controller
//       -> mirrored: a worker -> egress: leaf, and the levels below the root -> recirculation port -> ingress: root
//
// So a packet that reads the root, and then changes a leaf, passes ingress only once. Until the worker is back, other
// packets still see the old root. Each pipe gets the worker, because each has its own registers.
#ifndef FRONTAGE_TNA_TREE_P4
#define FRONTAGE_TNA_TREE_P4

// The score that a server reported last: whether it is active (1) | score (16). An ADD or SUB makes it unknown.
const bit<32> SCORE_INACTIVE = 0;
const bit<32> SCORE_UNKNOWN = 0x20000;

// Keeps reports that change nothing from becoming workers. Only workers write scores: if a worker is lost, the server's
// next report makes another one.
control ReportFilter(inout tree_t tree, in bit<1> is_worker) {
    Register<bit<32>, bit<16>>(TREE_SLOTS) scores;
    bit<32> score;

    RegisterAction<bit<32>, bit<16>, bit<1>>(scores) compare = {
        void apply(inout bit<32> known, out bit<1> is_news) {
            is_news = 0;
            if (known != score) {
                is_news = 1;
            }
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<1>>(scores) store = {
        void apply(inout bit<32> known, out bit<1> is_news) {
            known = score;
            is_news = 0;
        }
    };

    apply {
        score = SCORE_UNKNOWN;
        if (tree.op == TREE_SET) {
            score = 15w0 ++ 1w1 ++ tree.score;
        } else if (tree.op == TREE_CLEAR) {
            score = SCORE_INACTIVE;
        }
        if (is_worker == 1) {
            store.execute(tree.slot);
        } else if (compare.execute(tree.slot) == 0) {
            tree.op = TREE_NONE;
        }
    }
}

// The roots. A root holds the winners of the two halves of its tree.
control TreeRoot(inout tree_t tree, in bit<16> base, in bit<16> right) {
    Register<node_t, bit<16>>(TREE_SLOTS) roots; // the index is the first slot of the tree
    bit<16> coin; // zero or one bit

    RegisterAction<node_t, bit<16>, bit<32>>(roots) read = {
        void apply(inout node_t node, out bit<32> best) {
            best = node.left;
            if (node.right[31:16] > node.left[31:16] || (node.right[31:16] == node.left[31:16] && coin != 0)) {
                best = node.right;
            }
        }
    };

    RegisterAction<node_t, bit<16>, bit<32>>(roots) set_left = {
        void apply(inout node_t node) {
            node.left = tree.best;
        }
    };

    RegisterAction<node_t, bit<16>, bit<32>>(roots) set_right = {
        void apply(inout node_t node) {
            node.right = tree.best;
        }
    };

    // A tree of one slot. The slot may have been that of a larger tree before.
    RegisterAction<node_t, bit<16>, bit<32>>(roots) set_only = {
        void apply(inout node_t node) {
            node.left = tree.best;
            node.right = 0;
        }
    };

    action set_coin_mask(bit<16> mask) {
        coin = tree.tie_break & mask;
    }

    // The bit of the hash that decides between equal scores is that of the root's level.
    @hidden table coin_mask {
        key = { tree.depth: exact; }
        actions = { set_coin_mask; }
        const entries = {
            0: set_coin_mask(1);
            1: set_coin_mask(2);
            2: set_coin_mask(4);
            3: set_coin_mask(8);
            4: set_coin_mask(16);
            5: set_coin_mask(32);
            6: set_coin_mask(64);
            7: set_coin_mask(128);
            8: set_coin_mask(256);
            9: set_coin_mask(512);
            10: set_coin_mask(1024);
            11: set_coin_mask(2048);
            12: set_coin_mask(4096);
        }
        const default_action = set_coin_mask(0);
        size = 13;
    }

    apply {
        coin = 0;
        if (tree.op == TREE_READ) {
            coin_mask.apply();
            tree.best = read.execute(tree.slot);
        } else if (tree.depth == 0) {
            set_only.execute(base);
        } else if (right == 0) {
            set_left.execute(base);
        } else {
            set_right.execute(base);
        }
    }
}

// Ingress: reads or writes the root, and filters reports.
control Tree(inout metadata_t meta) {
    TreeRoot() root;
    ReportFilter() filter;
    bit<1> is_worker;

    apply {
        is_worker = 0;
        if (meta.direction == Direction.WORKER) {
            is_worker = 1;
        }
        if (meta.tree.op == TREE_READ || (meta.tree.op != TREE_NONE && is_worker == 1)) {
            root.apply(meta.tree, meta.tree_base, meta.tree_right);
        }
        if (meta.tree.op == TREE_READ) {
            meta.tree.op = TREE_NONE;
        } else if (meta.tree.op != TREE_NONE && (is_worker == 1 || meta.direction == Direction.DOWN)) {
            filter.apply(meta.tree, is_worker);
        }
    }
}

// Changes the tree by a worker. The handshake table is in ingress, so an operation on it needs a second pass.
control StateChange(inout metadata_t meta, in bit<8> tree_op, in bit<8> connection_op) {
    apply {
        if (connection_op == CONNECTION_NONE) {
            meta.tree.op = tree_op;
            meta.tree.slot = meta.slot;
            meta.tree.sid = meta.sid;
            meta.tree.score = meta.flow_unit;
        } else {
            meta.verdict = VERDICT_RESUBMIT;
            meta.second_pass = 1;
            meta.resubmit_tree_op = tree_op;
            meta.resubmit_connection_op = connection_op;
            meta.resubmit_slot = meta.slot;
            meta.resubmit_sid = meta.sid;
            meta.resubmit_outcome = meta.outcome;
        }
    }
}

// Egress: a worker changes the tree, and takes the root with it.
control TreeWorker(inout worker_t worker) {
    Tournament() tournament;
    tree_t tree;

    // The first slot of a tree is a multiple of its size.
    action set_masks(bit<16> root_mask, bit<16> half_mask) {
        worker.root = worker.slot & root_mask;
        worker.right = worker.slot & half_mask;
    }

    @hidden table root {
        key = { worker.tree_depth: exact; }
        actions = { set_masks; }
        const entries = {
            0: set_masks(0xffff, 0);
            1: set_masks(0xfffe, 1);
            2: set_masks(0xfffc, 2);
            3: set_masks(0xfff8, 4);
            4: set_masks(0xfff0, 8);
            5: set_masks(0xffe0, 16);
            6: set_masks(0xffc0, 32);
            7: set_masks(0xff80, 64);
            8: set_masks(0xff00, 128);
            9: set_masks(0xfe00, 256);
            10: set_masks(0xfc00, 512);
            11: set_masks(0xf800, 1024);
            12: set_masks(0xf000, 2048);
        }
        const default_action = set_masks(0xffff, 0);
        size = 13;
    }

    apply {
        tree.op = worker.tree_op;
        tree.depth = worker.tree_depth |-| 1; // the root is in ingress
        tree.slot = worker.slot;
        tree.sid = worker.sid;
        tree.score = worker.score;
        tree.tie_break = worker.tie_break;
        tree.best = 0;
        tournament.apply(tree);
        worker.best = tree.best;
        root.apply();
    }
}

#endif
