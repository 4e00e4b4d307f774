// SPDX-License-Identifier: Apache-2.0
// Converts a TCP code to a code of the IPv6 carrier, which has one more bit of mantissa. The value is exactly the
// same (docs/cookie.md, "Quantisation").
control WideCode(inout bit<8> code) {
    // Some targets compute one operation per action.
    action subtract() {
        code = code - 4;
    }

    action double() {
        code = code << 1;
    }

    apply {
        if (code > 7) {
            subtract();
            double();
        }
    }
}

// Insighting phase (CloudCookie, IV.B): reads the loads N_AF and N_FF from a server's packet and computes the
// server's score a * N_AF + (1 - a) * N_FF. The switch cannot multiply: for each score class, which is a pair of a
// and weight, the tables hold the two products for every code that the cookie can carry.
control Insight(in headers_t hdr, inout metadata_t meta) {
    WideCode() wide_af;
    WideCode() wide_ff;
    bit<8> n_af;
    bit<8> n_ff;

    action read_loads() {
        IN_HASH {
            n_af = 3w0 ++ hdr.tcp_timestamp.tsval[9:5];
            n_ff = 3w0 ++ hdr.tcp_timestamp.tsval[4:0];
        }
    }

    action add_score(bit<16> score) {
        meta.tree.score = meta.tree.score |+| score;
    }

    table score_af {
        key = {
            meta.score_class: exact @name("score_class");
            n_af: exact @name("n_af");
        }
        actions = { add_score; NoAction; }
        const default_action = NoAction();
        size = SCORES;
    }

    table score_ff {
        key = {
            meta.score_class: exact @name("score_class");
            n_ff: exact @name("n_ff");
        }
        actions = { add_score; NoAction; }
        const default_action = NoAction();
        size = SCORES;
    }

    apply {
        meta.outcome = OUTCOME_NO_INSIGHT;
        n_af = 0;
        n_ff = 0;
        if (hdr.tcp.isValid()) {
            if (hdr.tcp.ck == 1 && hdr.tcp_timestamp.isValid()) {
                meta.outcome = OUTCOME_INSIGHT;
                read_loads();
                wide_af.apply(n_af);
                wide_ff.apply(n_ff);
            }
        } else if (meta.quic_cookie.kind != QuicCookie.NONE) {
            if (meta.quic_cookie.kind == QuicCookie.DYNAMIC) {
                meta.outcome = OUTCOME_INSIGHT;
                n_af = meta.quic_cookie.n_af;
                n_ff = meta.quic_cookie.n_ff;
                meta.from_cookie_address = meta.quic_cookie.x;
            } else {
                meta.from_cookie_address = 1; // the source is the cookie address itself
            }
            if (meta.quic_cookie.sid != meta.sid) {
                meta.COOKIE_VERDICT = DROP_COOKIE_SOURCE;
            } else if (meta.from_cookie_address == 1 && meta.cookie_prefix[63:32] == 0) { // the service has no prefix
                meta.COOKIE_VERDICT = DROP_COOKIE_SOURCE;
            }
        } else if (meta.is_from_dip == 0) {
            meta.COOKIE_VERDICT = DROP_COOKIE_SOURCE;
        }

        if (meta.from_real_server == 1) {
            meta.outcome = OUTCOME_REAL_SERVER; // copied from its load balancer, whose own reports are newer
        } else if (meta.COOKIE_VERDICT == VERDICT_CONTINUE) {
            if (meta.outcome == OUTCOME_INSIGHT && meta.policy == POLICY_CCLB4) {
                meta.tree.score = 0;
                if (score_af.apply().hit) {
                    if (score_ff.apply().hit) {
                        meta.tree.op = TREE_SET;
                    }
                }
            }
            if (meta.active == 0) {
                meta.tree.op = TREE_CLEAR; // draining: no new connections
            }
            meta.tree.is_report = 1;
            meta.tree.slot = meta.slot;
            meta.tree.sid = meta.sid;
        }
    }
}
