// SPDX-License-Identifier: Apache-2.0
// The tournament trees are in egress, and ingress has the best server of each. A tree changes as follows:
//
//     packet of a server, first packet of a connection, operation of the controller
//       -> mirrored: a worker -> egress: leaf, levels up to the root -> recirculation port -> ingress: best server
//
// So a packet that reads the best server, and then changes a leaf, passes ingress only once. Until the worker is back,
// other packets still see the old one. Each pipe gets the worker, because each has its own registers.
#ifndef FRONTAGE_TNA_TREE_P4
#define FRONTAGE_TNA_TREE_P4

// The leaf's new headroom less one, instead of the score. A server that is active has a headroom of at least 1.
control Headroom(inout tree_t tree) {
    apply {
        if (tree.op == TREE_SET) {
            tree.score = 16w0xfffe |-| tree.score;
        } else if (tree.op == TREE_CLEAR) {
            tree.score = 0xffff;
            tree.sid = 0;
        }
    }
}

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
        score = REPORT_UNKNOWN;
        if (tree.op == TREE_SET) {
            score = 15w0 ++ 1w1 ++ tree.score;
        } else if (tree.op == TREE_CLEAR) {
            score = REPORT_INACTIVE;
        }
        if (is_worker == 1) {
            store.execute(tree.slot);
        } else if (compare.execute(tree.slot) == 0) {
            tree.op = TREE_NONE;
        }
    }
}

// The best server of each tree. The index is the first slot of the tree.
control TreeRoot(inout tree_t tree, in bit<16> base, in bit<1> reads) {
    Register<bit<32>, bit<16>>(TREE_SLOTS) roots;

    RegisterAction<bit<32>, bit<16>, bit<32>>(roots) read = {
        void apply(inout bit<32> root, out bit<32> best) {
            best = root;
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<32>>(roots) write = {
        void apply(inout bit<32> root) {
            root = tree.best;
        }
    };

    apply {
        if (reads == 1) {
            tree.best = read.execute(base);
        } else {
            write.execute(base);
        }
    }
}

// Ingress: reads or writes the root, and filters reports.
control Tree(inout metadata_t meta) {
    TreeRoot() root;
    Headroom() headroom;
    ReportFilter() filter;
    bit<1> is_worker;
    bit<1> reads;
    bit<16> base;

    apply {
        is_worker = 0;
        if (meta.direction == Direction.WORKER) {
            is_worker = 1;
        }
        reads = meta.reads_root;
        base = meta.tree_base;
        if (reads == 1 || meta.writes_root == 1) {
            root.apply(meta.tree, base, reads);
        }
        if (is_worker == 0) {
            headroom.apply(meta.tree);
        }
        if (reads == 1) {
            meta.tree.op = TREE_NONE;
        } else if (meta.tree.op != TREE_NONE && (is_worker == 1 || meta.tree.is_report == 1)) {
            filter.apply(meta.tree, is_worker);
        }
    }
}

// Changes the tree by a worker.
control TreeChange(inout metadata_t meta, in bit<8> tree_op) {
    apply {
        meta.tree.op = tree_op;
        meta.tree.slot = meta.slot;
        meta.tree.sid = meta.sid;
        meta.tree.score = meta.flow_unit;
    }
}

// No packet passes ingress a second time for the tree.
control Resume(inout metadata_t meta) {
    apply {}
}

// Egress: a worker changes the tree, and takes the best server with it.
control TreeWorker(inout worker_t worker) {
    Tournament() tournament;

    // The first slot of a tree is a multiple of its size.
    action set_root_mask(bit<16> mask) {
        worker.root = worker.slot & mask;
    }

    @hidden @stage(3) table root {
        key = { worker.depth: exact; }
        actions = { set_root_mask; }
        const entries = {
            0: set_root_mask(0xffff);
            1: set_root_mask(0xfffe);
            2: set_root_mask(0xfffc);
            3: set_root_mask(0xfff8);
            4: set_root_mask(0xfff0);
            5: set_root_mask(0xffe0);
            6: set_root_mask(0xffc0);
            7: set_root_mask(0xff80);
            8: set_root_mask(0xff00);
            9: set_root_mask(0xfe00);
            10: set_root_mask(0xfc00);
            11: set_root_mask(0xf800);
            12: set_root_mask(0xf000);
        }
        const default_action = set_root_mask(0xffff);
        size = 13;
    }

    apply {
        tournament.apply(worker);
        root.apply();
    }
}

#endif
