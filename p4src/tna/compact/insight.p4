// SPDX-License-Identifier: Apache-2.0
// The loads of a server, as in control/insight.p4.
#ifndef FRONTAGE_TNA_COMPACT_INSIGHT_P4
#define FRONTAGE_TNA_COMPACT_INSIGHT_P4

// Converts a TCP code to a code of the IPv6 carrier in one stage: (code - 4) * 2 for codes above 7.
control WideCode(inout bit<8> code) {
    action set_code(bit<8> wide) {
        code = wide;
    }

    @hidden table wide_code {
        key = { code: exact; }
        actions = { set_code; NoAction; }
        const entries = {
            8: set_code(8);
            9: set_code(10);
            10: set_code(12);
            11: set_code(14);
            12: set_code(16);
            13: set_code(18);
            14: set_code(20);
            15: set_code(22);
            16: set_code(24);
            17: set_code(26);
            18: set_code(28);
            19: set_code(30);
            20: set_code(32);
            21: set_code(34);
            22: set_code(36);
            23: set_code(38);
            24: set_code(40);
            25: set_code(42);
            26: set_code(44);
            27: set_code(46);
            28: set_code(48);
            29: set_code(50);
            30: set_code(52);
            31: set_code(54);
        }
        const default_action = NoAction();
        size = 32;
    }

    apply {
        wide_code.apply();
    }
}

control ReadLoads(in headers_t hdr, inout metadata_t meta) {
    WideCode() wide_af;
    WideCode() wide_ff;

    action read_loads() {
        IN_HASH {
            meta.n_af = 3w0 ++ hdr.tcp_timestamp.tsval[9:5];
            meta.n_ff = 3w0 ++ hdr.tcp_timestamp.tsval[4:0];
        }
    }

    apply {
        read_loads();
        wide_af.apply(meta.n_af);
        wide_ff.apply(meta.n_ff);
    }
}

control Insight(in headers_t hdr, inout metadata_t meta) {
    action add_score(bit<16> score) {
        meta.report_score = meta.report_score |+| score;
        meta.report_parts = meta.report_parts + 1;
    }

    table score_af {
        key = {
            meta.score_class: exact @name("score_class");
            meta.n_af: exact @name("n_af");
        }
        actions = { add_score; NoAction; }
        const default_action = NoAction();
        size = SCORES;
    }

    table score_ff {
        key = {
            meta.score_class: exact @name("score_class");
            meta.n_ff: exact @name("n_ff");
        }
        actions = { add_score; NoAction; }
        const default_action = NoAction();
        size = SCORES;
    }

    // The leaf's new headroom less one, instead of the score (tna/tree.p4).
    action set_leaf() {
        meta.outcome = OUTCOME_INSIGHT;
        meta.tree.op = TREE_SET;
        meta.tree.slot = meta.slot;
        meta.tree.sid = meta.sid;
        meta.tree.score = 16w0xfffe |-| meta.report_score;
    }

    // The server is draining: no new connections.
    action clear_leaf(bit<8> outcome) {
        meta.outcome = outcome;
        meta.tree.op = TREE_CLEAR;
        meta.tree.slot = meta.slot;
        meta.tree.score = 0xffff;
    }

    action set_outcome(bit<8> outcome) {
        meta.outcome = outcome;
    }

    @hidden table change {
        key = {
            meta.direction: ternary;
            meta.verdict: ternary;
            meta.has_report: ternary;
            meta.active: ternary;
            meta.policy: ternary;
            meta.report_parts: ternary;
#ifdef FOLDED
            meta.from_real_server: ternary;
#endif
        }
        actions = { set_leaf; clear_leaf; set_outcome; NoAction; }
        const entries = {
#ifdef FOLDED
            // Copied from its load balancer, whose own reports are newer
            (Direction.DOWN, VERDICT_CONTINUE, _, _, _, _, 1): set_outcome(OUTCOME_REAL_SERVER);
            (Direction.DOWN, VERDICT_CONTINUE, 1, 0, _, _, _): clear_leaf(OUTCOME_INSIGHT);
            (Direction.DOWN, VERDICT_CONTINUE, 0, 0, _, _, _): clear_leaf(OUTCOME_NO_INSIGHT);
            (Direction.DOWN, VERDICT_CONTINUE, 1, _, POLICY_CCLB4, 2, _): set_leaf();
            (Direction.DOWN, VERDICT_CONTINUE, 1, _, _, _, _): set_outcome(OUTCOME_INSIGHT);
            (Direction.DOWN, VERDICT_CONTINUE, 0, _, _, _, _): set_outcome(OUTCOME_NO_INSIGHT);
#else
            (Direction.DOWN, VERDICT_CONTINUE, 1, 0, _, _): clear_leaf(OUTCOME_INSIGHT);
            (Direction.DOWN, VERDICT_CONTINUE, 0, 0, _, _): clear_leaf(OUTCOME_NO_INSIGHT);
            (Direction.DOWN, VERDICT_CONTINUE, 1, _, POLICY_CCLB4, 2): set_leaf();
            (Direction.DOWN, VERDICT_CONTINUE, 1, _, _, _): set_outcome(OUTCOME_INSIGHT);
            (Direction.DOWN, VERDICT_CONTINUE, 0, _, _, _): set_outcome(OUTCOME_NO_INSIGHT);
#endif
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        score_af.apply();
        score_ff.apply();
        change.apply();
    }
}

#endif
