// SPDX-License-Identifier: Apache-2.0
// The root of each tournament tree, and the filter of reports, as in tna/tree.p4.
#ifndef FRONTAGE_TNA_COMPACT_TREE_P4
#define FRONTAGE_TNA_COMPACT_TREE_P4

// Reads the best server, or writes the one that a worker brings.
control Root(in headers_t hdr, inout metadata_t meta) {
    Register<bit<32>, bit<16>>(TREE_SLOTS) roots;

    RegisterAction<bit<32>, bit<16>, bit<32>>(roots) read = {
        void apply(inout bit<32> root, out bit<32> best) {
            best = root;
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<32>>(roots) write = {
        void apply(inout bit<32> root) {
            root = hdr.worker.best;
        }
    };

    action read_root() {
        meta.tree.best = read.execute(meta.tree_base);
    }

    action write_root() {
        write.execute(meta.tree_base);
    }

    @hidden STAGE_OF_TOFINO1(2) table root {
        key = {
            meta.direction: ternary;
            meta.is_new_connection: ternary;
            meta.can_carry_cookie: ternary;
            meta.policy: ternary;
#ifndef ONE_PROTOCOL
            hdr.quic_long.isValid(): ternary;
#endif
        }
        actions = { read_root; write_root; @defaultonly NoAction; }
        const entries = {
#ifdef ONE_PROTOCOL
            (Direction.UP, 1, 1, POLICY_CHEETAH_LL): read_root();
            (Direction.UP, 1, 1, POLICY_CCLB4): read_root();
            (Direction.WORKER, _, _, _): write_root();
#define ROOT_ENTRIES 4
#else
            (Direction.UP, 1, 1, POLICY_CHEETAH_LL, _): read_root();
            (Direction.UP, 1, 1, POLICY_CCLB4, _): read_root();
            (Direction.UP, _, _, POLICY_CHEETAH_LL, true): read_root();
            (Direction.UP, _, _, POLICY_CCLB4, true): read_root();
            (Direction.WORKER, _, _, _, _): write_root();
#define ROOT_ENTRIES 5
#endif
        }
        const default_action = NoAction();
        size = ROOT_ENTRIES;
    }

    apply {
        root.apply();
    }
}

// The leaf's new headroom less one, instead of the score that the controller sends (tna/tree.p4).
control ControllerHeadroom(inout metadata_t meta) {
    action set_headroom() {
        meta.tree.score = 16w0xfffe |-| meta.tree.score;
    }

    action clear_leaf() {
        meta.tree.score = 0xffff;
        meta.tree.sid = 0;
    }

    @hidden table headroom {
        key = {
            meta.direction: ternary;
            meta.tree.op: ternary;
        }
        actions = { set_headroom; clear_leaf; NoAction; }
        const entries = {
            (Direction.CONTROLLER, TREE_SET): set_headroom();
            (Direction.CONTROLLER, TREE_CLEAR): clear_leaf();
        }
        const default_action = NoAction();
        size = 2;
    }

    apply {
        headroom.apply();
    }
}

// Marks reports that change nothing, which do not become workers.
control Filter(inout metadata_t meta) {
    Register<bit<32>, bit<16>>(TREE_SLOTS) scores;

    RegisterAction<bit<32>, bit<16>, bit<1>>(scores) compare = {
        void apply(inout bit<32> known, out bit<1> is_repeated) {
            is_repeated = 0;
            if (known == meta.filter_score) {
                is_repeated = 1;
            }
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<1>>(scores) store = {
        void apply(inout bit<32> known) {
            known = meta.filter_score;
        }
    };

    action read_score() {
        IN_HASH { meta.filter_score = 15w0 ++ 1w1 ++ meta.tree.score; }
    }

    apply {
        if (meta.tree.op == TREE_SET) {
            read_score();
        } else if (meta.tree.op == TREE_CLEAR) {
            meta.filter_score = REPORT_INACTIVE;
        } else {
            meta.filter_score = REPORT_UNKNOWN;
        }
        if (meta.direction == Direction.WORKER) {
            store.execute(meta.tree.slot);
        } else if (meta.direction == Direction.DOWN && meta.tree.op != TREE_NONE) {
            meta.is_repeated = compare.execute(meta.tree.slot);
        }
    }
}

#endif
