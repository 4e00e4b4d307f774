// SPDX-License-Identifier: Apache-2.0
// The core: the results of the edge become metadata.
#ifndef FRONTAGE_TNA_FOLDED_ARRIVAL_P4
#define FRONTAGE_TNA_FOLDED_ARRIVAL_P4

control Arrival(inout headers_t hdr, inout metadata_t meta, in bit<16> parser_error) {
    action arrive() {
        meta.vip_id = hdr.fold.vip_id;
        meta.connection_hash = hdr.fold.connection_hash;
        meta.connection.index = hdr.fold.connection_index;
        meta.sid = hdr.fold.sid;
        meta.slot = hdr.fold.slot;
        meta.score_class = hdr.fold.score_class;
        meta.cookie_form = hdr.fold.cookie_form;
#ifdef FOUR_PIPES
        meta.cookie_rank = hdr.fold.rank;
        meta.has_cookie_rank = hdr.fold.has_rank;
#endif
        meta.candidate_sid = hdr.fold.candidate_sid;
        meta.candidate_found = hdr.fold.candidate_found;
        meta.is_check = hdr.fold.is_check;
        meta.is_named = hdr.fold.is_named;
        meta.is_sealed_cid = hdr.fold.is_sealed_cid;
        meta.at_cookie_address = hdr.fold.at_cookie_address;
        meta.may_hold_initial = hdr.fold.may_hold_initial;
        meta.active = hdr.fold.active;
        meta.has_report = hdr.fold.has_report;
        meta.is_refused = hdr.fold.is_refused;
        meta.from_real_server = hdr.fold.from_real_server;
        meta.cookie_word = hdr.ipv6.dst[63:0];
    }

    action transit() {
        arrive();
        meta.direction = Direction.TRANSIT;
    }

#ifdef FOUR_PIPES
    // To a client or another site: the egress of the core (site.p4) has changed the packet.
    action from_site() {
        arrive();
        meta.direction = Direction.RESPONSE;
        meta.outcome = hdr.site.outcome;
    }
#endif

    action from_client() {
        arrive();
        meta.direction = Direction.UP;
        meta.update_tcp = 1; // without effect on datagrams
    }

    action check() {
        from_client();
        meta.outcome = OUTCOME_CHECK;
    }

    action from_server() {
        arrive();
        meta.direction = Direction.DOWN;
        meta.update_tcp = 1;
    }

    // Without the error as key, the chip would drop packets that the parser finds too short.
    @hidden table arrival {
        key = {
            hdr.fold.direction: ternary;
            hdr.fold.is_check: ternary;
#ifdef FOUR_PIPES
            hdr.site.outcome: ternary;
#endif
            parser_error: ternary;
        }
#ifdef FOUR_PIPES
        actions = { transit; from_client; check; from_server; from_site; }
        const entries = {
            (Direction.UP, 1, _, _): check();
            (Direction.UP, _, _, _): from_client();
            (Direction.DOWN, _, _, _): from_server();
            (_, _, 0, _): transit();
        }
        const default_action = from_site();
#else
        actions = { transit; from_client; check; from_server; }
        const entries = {
            (Direction.UP, 1, _): check();
            (Direction.UP, _, _): from_client();
            (Direction.DOWN, _, _): from_server();
        }
        const default_action = transit();
#endif
        size = 4;
    }

    apply {
        arrival.apply();
    }
}

#endif
