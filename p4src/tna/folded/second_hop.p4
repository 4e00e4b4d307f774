// SPDX-License-Identifier: Apache-2.0
// The core: the next server of a refused packet, as in control/second_hop.p4. The table is looked up together with Maglev's. For
// a refused packet, the next server replaces that of the hash.
#ifndef FRONTAGE_TNA_FOLDED_SECOND_HOP_P4
#define FRONTAGE_TNA_FOLDED_SECOND_HOP_P4

control SecondHop(in headers_t hdr, inout metadata_t meta) {
    bit<16> slot;
    bit<8> number;
    sid_t first_sid;
    sid_t second_sid;
    sid_t third_sid;
    // The server that refused the packet XOR each of the others
    bit<16> not_first;
    bit<16> not_second;
    bit<16> not_third;

    action set_others(bit<8> count, sid_t first, sid_t second, sid_t third) {
        number = count;
        first_sid = first;
        second_sid = second;
        third_sid = third;
    }

    table others {
        key = {
            meta.vip_id: exact @name("vip_id");
            slot: exact @name("slot");
        }
        actions = { set_others; NoAction; }
        const default_action = NoAction();
        size = SECOND_HOP_SLOTS;
    }

    action compare() {
        not_first = first_sid ^ meta.sid;
        not_second = second_sid ^ meta.sid;
        not_third = third_sid ^ meta.sid;
    }

    action stay(bit<1> can_move) {
        meta.can_move = can_move;
    }

    action use_first(bit<1> can_move) {
        meta.hash_sid = first_sid;
        meta.hash_found = 1;
        meta.can_move = can_move;
    }

    action use_second(bit<1> can_move) {
        meta.hash_sid = second_sid;
        meta.hash_found = 1;
        meta.can_move = can_move;
    }

    action use_third() {
        meta.hash_sid = third_sid;
        meta.hash_found = 1;
    }

    // Without a server of the hash, all servers drain, and the first one takes its place. A refused packet goes to the server of
    // the hash after the last one.
    @hidden table next {
        key = {
            meta.is_refused: ternary;
            meta.hash_found: ternary;
            number: ternary;
            not_first: ternary;
            not_second: ternary;
            not_third: ternary;
        }
        actions = { stay; use_first; use_second; use_third; NoAction; }
        const entries = {
            (_, _, 0, _, _, _): NoAction();
            (0, 1, _, _, _, _): stay(1);
            (0, _, 1, _, _, _): use_first(0);
            (0, _, _, _, _, _): use_first(1);
            (1, 1, 1, 0, _, _): NoAction();
            (1, _, 1, _, _, _): use_first(0);
            (1, _, 2, 0, _, _): use_second(0);
            (1, 1, 2, _, 0, _): NoAction();
            (1, _, 2, _, 0, _): use_first(0);
            (1, _, _, 0, _, _): use_second(1);
            (1, _, _, _, 0, _): use_third();
            (1, 1, _, _, _, 0): NoAction();
            (1, _, _, _, _, 0): use_first(0);
            (1, _, _, _, _, _): use_first(1);
        }
        const default_action = NoAction();
        size = 16;
    }

    apply {
        number = 0;
        first_sid = 0;
        second_sid = 0;
        third_sid = 0;
        slot = meta.connection_hash[15:0] & meta.maglev_mask;
        if (!IS_CHECK && meta.direction == Direction.UP && hdr.tcp.isValid() && meta.is_new_connection == 0
            && !hdr.tcp_timestamp.isValid()) {
            others.apply();
        }
        compare();
        next.apply();
    }
}

// Marks a packet that its server may refuse, and clears the mark of clients.
control SecondHopMark(inout headers_t hdr, in metadata_t meta) {
    action mark(bit<1> second_hop) {
        hdr.tcp.second_hop = second_hop;
    }

    @hidden table marking {
        key = {
            meta.direction: ternary;
            meta.can_move: ternary;
            meta.outcome: ternary;
        }
        actions = { mark; NoAction; }
        const entries = {
            (Direction.UP, 1, OUTCOME_HASHED_NO_COOKIE): mark(1);
            (Direction.UP, 1, OUTCOME_RETRIEVED_TABLE): mark(1);
            (Direction.UP, 1, OUTCOME_SECOND_HOP): mark(1);
            (Direction.UP, _, _): mark(0);
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        marking.apply();
    }
}

#endif
