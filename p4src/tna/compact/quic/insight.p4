// SPDX-License-Identifier: Apache-2.0
// The loads of a QUIC server, as in control/insight.p4.
#ifndef FRONTAGE_TNA_COMPACT_QUIC_INSIGHT_P4
#define FRONTAGE_TNA_COMPACT_QUIC_INSIGHT_P4

control Scores(inout metadata_t meta) {
    action add_score(bit<16> score) {
        meta.report_score = meta.report_score |+| score;
        meta.report_parts = meta.report_parts + 1;
    }

    table score_af {
        key = {
            meta.score_class: exact @name("score_class");
            meta.tree.best[23:16]: exact @name("n_af");
        }
        actions = { add_score; NoAction; }
        const default_action = NoAction();
        size = SCORES;
    }

    table score_ff {
        key = {
            meta.score_class: exact @name("score_class");
            meta.right_half[27:20]: exact @name("n_ff");
        }
        actions = { add_score; NoAction; }
        const default_action = NoAction();
        size = SCORES;
    }

    apply {
        score_ff.apply();
        score_af.apply();
    }
}

control Insight(inout metadata_t meta) {
    // The leaf's new headroom less one, instead of the score (tna/tree.p4).
    action set_leaf() {
        meta.outcome = OUTCOME_INSIGHT;
        meta.tree.op = TREE_SET;
        meta.tree.slot = meta.slot;
        meta.tree.sid = meta.sid;
        meta.tree.score = 16w0xfffe |-| meta.report_score;
        meta.filter_score[31:16] = 1;
        meta.filter_score[15:0] = 16w0xfffe |-| meta.report_score;
    }

    // The server is draining: no new connections.
    action clear_leaf(bit<8> outcome) {
        meta.outcome = outcome;
        meta.tree.op = TREE_CLEAR;
        meta.tree.slot = meta.slot;
        meta.tree.score = 0xffff;
        meta.filter_score = REPORT_INACTIVE;
    }

    action set_outcome(bit<8> outcome) {
        meta.outcome = outcome;
    }

    action drop(bit<8> reason) {
        meta.verdict = reason;
    }

    @hidden table change {
        key = {
            meta.direction: ternary;
            meta.verdict: ternary;
            meta.is_bad_source: ternary;
            meta.quic_cookie.kind: ternary;
            meta.active: ternary;
            meta.policy: ternary;
            meta.report_parts: ternary;
        }
        actions = { set_leaf; clear_leaf; set_outcome; drop; NoAction; }
        const entries = {
            (Direction.DOWN, VERDICT_CONTINUE, 1, _, _, _, _): drop(DROP_COOKIE_SOURCE);
            (Direction.DOWN, VERDICT_CONTINUE, _, QuicCookie.DYNAMIC, 0, _, _): clear_leaf(OUTCOME_INSIGHT);
            (Direction.DOWN, VERDICT_CONTINUE, _, _, 0, _, _): clear_leaf(OUTCOME_NO_INSIGHT);
            (Direction.DOWN, VERDICT_CONTINUE, _, QuicCookie.DYNAMIC, _, POLICY_CCLB4, 2): set_leaf();
            (Direction.DOWN, VERDICT_CONTINUE, _, QuicCookie.DYNAMIC, _, _, _): set_outcome(OUTCOME_INSIGHT);
            (Direction.DOWN, VERDICT_CONTINUE, _, _, _, _, _): set_outcome(OUTCOME_NO_INSIGHT);
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        change.apply();
    }
}

// Marks reports that change nothing, as in ../tree.p4. The score is set in the same stage as the report.
control ReportScore(in headers_t hdr, inout metadata_t meta) {
    action set_score() {
        meta.filter_score[31:16] = 1;
        meta.filter_score[15:0] = hdr.worker.score;
    }

    action set_inactive() {
        meta.filter_score = REPORT_INACTIVE;
    }

    action set_unknown() {
        meta.filter_score = REPORT_UNKNOWN;
    }

    @hidden table operation {
        key = {
            hdr.worker.isValid(): ternary;
            hdr.worker.op: ternary;
        }
        actions = { set_score; set_inactive; set_unknown; NoAction; }
        const entries = {
            (true, TREE_SET): set_score();
            (true, TREE_CLEAR): set_inactive();
            (true, _): set_unknown();
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        operation.apply();
    }
}

control QuicFilter(inout metadata_t meta) {
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

    action compare_report() {
        meta.is_repeated = compare.execute(meta.tree.slot);
    }

    action store_report() {
        store.execute(meta.tree.slot);
    }

    @hidden table access {
        key = {
            meta.direction: ternary;
            meta.tree.op: ternary;
        }
        actions = { compare_report; store_report; @defaultonly NoAction; }
        const entries = {
            (Direction.WORKER, _): store_report();
            (Direction.DOWN, TREE_SET): compare_report();
            (Direction.DOWN, TREE_CLEAR): compare_report();
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        access.apply();
    }
}

// The source that the client expects: the VIP, which is there already, or the server's cookie address.
control Masking(inout headers_t hdr, inout metadata_t meta) {
    action rewrite_source(bit<64> interface_id) {
        hdr.ipv6.src = meta.cookie_prefix ++ interface_id;
    }

    table static_cookie {
        key = {
            meta.cookie_word[60:60]: exact @name("epoch");
            meta.sid: exact @name("sid");
        }
        actions = { rewrite_source; NoAction; }
        const default_action = NoAction();
        size = STATIC_COOKIES;
    }

    apply {
        if (meta.direction == Direction.DOWN && meta.from_cookie_address == 1) {
            static_cookie.apply();
        }
    }
}

#endif
