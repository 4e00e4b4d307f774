// Insighting phase (CloudCookie, IV.B): read RPT, N_AF and N_FF from a server's packet, and from the loads make the server's
// score a * N_AF + (1 - a) * N_FF. The controller multiplies: a class stands for an a and a weight, and its entries hold the
// two products for every code that the cookie can carry.
control Insight(in headers_t hdr, inout metadata_t meta) {
    bit<5> n_af;
    bit<5> n_ff;

    action add_score(bit<16> score) {
        meta.tree.score = meta.tree.score |+| score;
    }

    table score_af {
        key = {
            meta.score_class: exact @name("class");
            n_af: exact @name("n_af");
        }
        actions = { add_score; NoAction; }
        const default_action = NoAction();
        size = SCORES;
    }

    table score_ff {
        key = {
            meta.score_class: exact @name("class");
            n_ff: exact @name("n_ff");
        }
        actions = { add_score; NoAction; }
        const default_action = NoAction();
        size = SCORES;
    }

    apply {
        if (hdr.tcp.ck == 1 && hdr.tcp_timestamp.isValid()) {
            meta.outcome = OUTCOME_INSIGHT;
            meta.rpt = hdr.tcp_timestamp.tsval[15:10];
            if (meta.policy == POLICY_CCLB4) {
                n_af = hdr.tcp_timestamp.tsval[9:5];
                n_ff = hdr.tcp_timestamp.tsval[4:0];
                meta.tree.score = 0;
                if (score_af.apply().hit && score_ff.apply().hit) {
                    meta.tree.op = TREE_SET;
                }
            }
        } else {
            meta.outcome = OUTCOME_NO_INSIGHT;
            if ((hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK)) {
                // This flow will carry no cookie: remember its server.
                meta.connection.op = CONNECTION_CLAIM;
            }
        }
        if (meta.active == 0) {
            meta.tree.op = TREE_CLEAR; // it is draining: no new flows
        }
        meta.tree.slot = meta.slot;
        meta.tree.sid = meta.sid;
    }
}
