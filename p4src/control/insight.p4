// TCP's codes on the IPv6 carrier's scale, which has one bit more of mantissa: the same value, exactly (docs/cookie.md, "Quantisation").
bit<8> wide_code(in bit<8> code) {
    bit<8> wide = code;
    if (code > 7) {
        wide = (code << 1) - 8;
    }
    return wide;
}

// Insighting phase (CloudCookie, IV.B): read N_AF and N_FF from a server's packet, and from the loads make the server's
// score a * N_AF + (1 - a) * N_FF. The controller multiplies: a class stands for an a and a weight, and its entries hold the
// two products for every code that the cookie can carry.
control Insight(in headers_t hdr, inout metadata_t meta) {
    bit<8> n_af;
    bit<8> n_ff;

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
                n_af = wide_code(3w0 ++ hdr.tcp_timestamp.tsval[9:5]);
                n_ff = wide_code(3w0 ++ hdr.tcp_timestamp.tsval[4:0]);
            }
        } else if (meta.carried.what != Carried.NOTHING) {
            if (meta.carried.what == Carried.DYNAMIC_COOKIE) {
                meta.outcome = OUTCOME_INSIGHT;
                n_af = meta.carried.n_af;
                n_ff = meta.carried.n_ff;
                meta.at_cookie_address = meta.carried.x;
            } else {
                meta.at_cookie_address = 1; // from its cookie address
            }
            if (meta.carried.sid != meta.sid || (meta.at_cookie_address == 1 && meta.cookie_prefix == 0)) {
                meta.drop = DROP_COOKIE_SOURCE;
            }
        } else if (meta.interface_id != meta.dip_id) {
            meta.drop = DROP_COOKIE_SOURCE;
        }

        if (meta.from_real_server == 1) {
            meta.outcome = OUTCOME_REAL_SERVER; // what its load balancer told it, which by now knows better
        } else if (meta.drop == DROP_NONE) {
            if (meta.outcome == OUTCOME_INSIGHT && meta.policy == POLICY_CCLB4) {
                meta.tree.score = 0;
                if (score_af.apply().hit && score_ff.apply().hit) {
                    meta.tree.op = TREE_SET;
                }
            }
            if (meta.active == 0) {
                meta.tree.op = TREE_CLEAR; // it is draining: no new flows
            }
            meta.tree.slot = meta.slot;
            meta.tree.sid = meta.sid;
        }
    }
}
