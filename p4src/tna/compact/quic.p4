// SPDX-License-Identifier: Apache-2.0
// QUIC: the lengths of datagrams, the cookies of both directions, and the choice of the server.
#ifndef FRONTAGE_TNA_COMPACT_QUIC_P4
#define FRONTAGE_TNA_COMPACT_QUIC_P4

// Faults of a datagram (control/transport.p4). Replaces parse_failure, because a datagram need not be QUIC.
control Datagrams(in headers_t hdr, inout metadata_t meta) {
    bit<16> header_length; // of UDP and QUIC
    bit<16> initial_space; // bytes that a datagram with an Initial has, but this one lacks
    bit<16> excess;        // bytes of the datagram beyond the end of the packet
    bit<16> missing;       // bytes that the QUIC header needs, but the datagram lacks

    action read_long_header() {
        IN_HASH { header_length = 8w0 ++ hdr.quic_long.dcid_length; }
    }

    action compare_with_initial() {
        initial_space = (8 + QUIC_INITIAL) |-| hdr.udp.length;
    }

    // 8 bytes of UDP, and the long header up to and including the length of the source connection id.
    action add_fixed_length() {
        header_length = header_length + 15;
    }

    action set_short_header_length() {
        header_length = 18;
    }

    action compare_lengths() {
        excess = hdr.udp.length |-| meta.segment_length;
        missing = header_length |-| hdr.udp.length;
    }

    action no_fault() {
        meta.parse_failure = DROP_NONE;
    }

    action fault(bit<8> reason) {
        meta.parse_failure = reason;
    }

    @hidden table datagram {
        key = {
            hdr.udp.length: ternary;
            excess: ternary;
            hdr.ipv6.isValid(): ternary;
            hdr.udp.checksum: ternary;
            missing: ternary;
        }
        actions = { fault; no_fault; }
        const entries = {
            (0 &&& 0xfff8, _, _, _, _): fault(DROP_UDP_HEADER); // below 8
            (_, 0, true, 0, _): fault(DROP_UDP_CHECKSUM);
            (_, 0, _, _, 0): no_fault();
            (_, 0, _, _, _): fault(DROP_QUIC_HEADER);
        }
        const default_action = fault(DROP_UDP_HEADER);
        size = 4;
    }

    apply {
        read_long_header();
        compare_with_initial();
        if (hdr.quic_long.isValid()) {
            add_fixed_length();
            if (initial_space == 0) {
                meta.may_hold_initial = 1;
            }
        } else {
            set_short_header_length();
        }
        compare_lengths();
        if (hdr.udp.isValid()) {
            datagram.apply();
        }
        if (hdr.udp.isValid() && meta.direction != Direction.TRANSIT && hdr.udp.checksum != 0) { // zero: none (RFC 768)
            meta.update_udp = 1;
        }
    }
}

// The server in a client's cookie. The first packet of a handshake also has a candidate by the policy.
control QuicRetrieval(in headers_t hdr, inout metadata_t meta) {
    action use_sealed() {
        meta.candidate_sid = meta.opened_left[31:16];
        meta.candidate_found = 1;
        meta.is_named = 1;
        meta.is_sealed_cid = 1;
    }

    action use_address() {
        meta.candidate_sid = meta.opened_left[31:16];
        meta.candidate_found = 1;
        meta.is_named = 1;
    }

    action use_plain() {
        meta.candidate_sid = meta.cookie_word[63:48];
        meta.candidate_found = 1;
        meta.is_named = 1;
    }

    action forged() {
        meta.QUIC_VERDICT = DROP_COOKIE_FORGED;
    }

    @hidden table retrieval {
        key = {
            meta.at_cookie_address: ternary;
            meta.cookie_form: ternary;
            meta.is_keyed: ternary;
            meta.cookie_word[63:61]: ternary;
            meta.opened_left[15:0]: ternary;
            meta.opened_right[27:0]: ternary;
            meta.may_hold_initial: ternary;
        }
        actions = { use_sealed; use_address; use_plain; forged; NoAction; }
        const entries = {
            (1, FORM_INTERFACE_ID, 1, 0b010, 0, 0, _): use_address();
            (1, _, _, _, _, _, _): forged();
            // A sealed connection id has a random part.
            (0, FORM_SEALED_CID, 1, _, 0, 0, _): NoAction();
            (0, FORM_SEALED_CID, 1, _, _, 0 &&& 0xfffff, _): use_sealed();
            (0, FORM_PLAIN_CID, _, _, _, _, 0): use_plain();
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        if (!IS_CHECK && hdr.udp.isValid() && meta.direction == Direction.UP && meta.verdict == VERDICT_CONTINUE) {
            retrieval.apply();
        }
    }
}

// Reads the cookie of a server's packet.
control QuicSource(in headers_t hdr, inout metadata_t meta) {
    bit<16> other_sid; // the SID of the cookie XOR the server's

    action compare_sids() {
        other_sid = meta.opened_left[31:16] ^ meta.sid;
    }

    action read_loads() {
        IN_HASH {
            meta.n_af = meta.opened_left[7:0];
            meta.n_ff = meta.opened_right[27:20];
        }
    }

    action report(bit<1> has_report, bit<1> from_cookie_address) {
        meta.has_report = has_report;
        meta.from_cookie_address = from_cookie_address;
    }

    action wrong_source() {
        meta.QUIC_VERDICT = DROP_COOKIE_SOURCE;
    }

    // Whether a server's packet has loads, and which address its client expects.
    @hidden table source {
        key = {
            meta.cookie_form: ternary;
            meta.is_keyed: ternary;
            meta.cookie_word[63:61]: ternary;
            meta.opened_left[15:0]: ternary;
            meta.opened_right[27:0]: ternary;
            other_sid: ternary;
            meta.cookie_prefix[63:32]: ternary;
        }
        actions = { report; wrong_source; NoAction; }
        const entries = {
            (FORM_DIP, _, _, _, _, _, _): NoAction();
            (FORM_INTERFACE_ID, 1, 0b011, _, 0x00000 &&& 0xfffff, 0, _): report(1, 0);
            (FORM_INTERFACE_ID, 1, 0b011, _, 0x80000 &&& 0xfffff, 0, 0): wrong_source(); // the service has no prefix
            (FORM_INTERFACE_ID, 1, 0b011, _, 0x80000 &&& 0xfffff, 0, _): report(1, 1);
            (FORM_INTERFACE_ID, 1, 0b010, 0, 0, 0, 0): wrong_source();
            (FORM_INTERFACE_ID, 1, 0b010, 0, 0, 0, _): report(0, 1);
        }
        const default_action = wrong_source();
        size = 8;
    }

    apply {
        compare_sids();
        if (hdr.udp.isValid()) {
            read_loads();
        }
        if (hdr.udp.isValid() && meta.direction == Direction.DOWN && meta.verdict == VERDICT_CONTINUE) {
            source.apply();
        }
    }
}

// For a client that migrated to its server's cookie address, the source becomes that address (control/masking.p4).
control QuicMasking(inout headers_t hdr, inout metadata_t meta) {
    // The static cookie of each server and epoch: the interface id of its cookie address.
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

// The server of a QUIC client's packet (control/handshake.p4, control/choice.p4). The server of a known handshake is read later.
control QuicChoice(in headers_t hdr, inout metadata_t meta) {
    action use_handshake() {
        meta.outcome = OUTCOME_RETRIEVED_HANDSHAKE;
    }

    action use_cookie(bit<8> outcome) {
        meta.sid = meta.candidate_sid;
        meta.outcome = outcome;
    }

    action use_assigned() {
        meta.sid = meta.candidate_sid;
        meta.outcome = meta.assigned_outcome;
    }

    action use_assigned_and_add() {
        use_assigned();
        meta.tree.op = TREE_ADD;
        meta.tree.slot = meta.slot;
        meta.tree.sid = meta.candidate_sid;
        meta.tree.score = meta.flow_unit;
    }

    action use_hash(bit<8> outcome) {
        meta.sid = meta.hash_sid;
        meta.outcome = outcome;
    }

    action drop(bit<8> reason) {
        meta.sid = meta.candidate_sid; // of a new handshake, nevertheless
        meta.verdict = reason;
    }

    @hidden table first_found {
        key = {
            hdr.second_pass.isValid(): ternary;
            meta.at_cookie_address: ternary;
            meta.is_sealed_cid: ternary;
            hdr.quic_long.isValid(): ternary;
            meta.found_handshake: ternary;
            meta.joined_handshake: ternary;
            meta.may_hold_initial: ternary;
            meta.candidate_found: ternary;
            meta.is_member: ternary;
            meta.active: ternary;
            meta.tree.best[31:16]: ternary;
            meta.hash_found: ternary;
        }
        actions = { use_handshake; use_cookie; use_assigned; use_assigned_and_add; use_hash; drop; }
        const entries = {
            (true, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_SERVER_GONE);
            (_, 1, _, _, _, _, _, _, 1, _, _, _): use_cookie(OUTCOME_RETRIEVED_ADDRESS);
            (_, 1, _, _, _, _, _, _, _, _, _, _): drop(DROP_SERVER_GONE);
            // known handshakes
            (_, _, 0, _, JOIN_OWN, _, _, _, _, _, _, _): use_handshake();
            (_, _, _, true, JOIN_OWN, _, _, _, _, _, _, _): use_handshake();
            (_, _, _, _, _, JOIN_OWN, _, _, _, _, _, _): use_handshake();
            // new ones
            (_, _, 0, _, _, JOIN_FREE, _, _, 1, 1, 0, _): use_assigned();
            (_, _, 0, _, _, JOIN_FREE, _, _, 1, 1, _, _): use_assigned_and_add();
            (_, _, 0, _, _, JOIN_FREE, _, _, _, _, _, _): use_hash(OUTCOME_ASSIGNED_NO_LOAD);
            (_, _, 0, _, _, JOIN_EXPIRED, _, _, 1, 1, 0, _): use_assigned();
            (_, _, 0, _, _, JOIN_EXPIRED, _, _, 1, 1, _, _): use_assigned_and_add();
            (_, _, 0, _, _, JOIN_EXPIRED, _, _, _, _, _, _): use_hash(OUTCOME_ASSIGNED_NO_LOAD);
            (_, _, 0, _, _, _, 1, _, _, _, _, 1): use_hash(OUTCOME_HASHED_HANDSHAKE);
            (_, _, 0, _, _, _, 1, _, _, _, _, _): drop(DROP_VIP_NO_SERVER);
            // connection ids
            (_, _, _, _, _, _, _, 1, 1, _, _, _): use_cookie(OUTCOME_RETRIEVED_CID);
            (_, _, _, _, _, _, _, 1, _, _, _, _): drop(DROP_SERVER_GONE);
            (_, _, _, true, _, _, _, _, _, _, _, _): drop(DROP_QUIC_SMALL);
        }
        const default_action = drop(DROP_QUIC_NO_CONNECTION);
        size = 32;
    }

    apply {
        first_found.apply();
    }
}

#endif
