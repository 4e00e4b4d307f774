// SPDX-License-Identifier: Apache-2.0
// The edge: writes metadata to the header of the fold. The header is valid from the start, and has the containers of the metadata
// (FOLD_ALIASES), so the last stages only have to remove the header of packets that do not enter the core.
#ifndef FRONTAGE_TNA_FOLDED_DEPARTURE_P4
#define FRONTAGE_TNA_FOLDED_DEPARTURE_P4

control Fold(inout headers_t hdr, in metadata_t meta) {
    action write() {
        hdr.fold.kind = INTERNAL_FOLD;
        hdr.fold.direction = (bit<8>)meta.direction;
        hdr.fold.vip_id = meta.vip_id;
        hdr.fold.connection_hash = meta.connection_hash;
        hdr.fold.connection_index = meta.connection.index;
        hdr.fold.sid = meta.sid;
        hdr.fold.slot = meta.slot;
        hdr.fold.score_class = meta.score_class;
        hdr.fold.cookie_form = meta.cookie_form;
        hdr.fold.n_af = meta.n_af;
        hdr.fold.n_ff = meta.n_ff;
#ifdef FOUR_PIPES
        hdr.fold.rank = meta.cookie_rank;
        hdr.fold.reserved2 = 0;
        hdr.fold.has_rank = meta.has_cookie_rank;
#endif
        hdr.fold.candidate_sid = meta.candidate_sid;
        hdr.fold.candidate_found = meta.candidate_found;
        hdr.fold.is_check = meta.is_check;
        hdr.fold.is_named = meta.is_named;
        hdr.fold.is_sealed_cid = meta.is_sealed_cid;
        hdr.fold.at_cookie_address = meta.at_cookie_address;
        hdr.fold.may_hold_initial = meta.may_hold_initial;
        hdr.fold.active = meta.active;
        hdr.fold.has_report = meta.has_report;
        hdr.fold.reserved = 0;
        hdr.fold.is_refused = meta.is_refused;
        hdr.fold.from_real_server = meta.from_real_server;
    }

    apply {
        write();
    }
}

#endif
