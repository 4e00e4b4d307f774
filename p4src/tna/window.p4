// SPDX-License-Identifier: Apache-2.0
// AIFO's window of sampled ranks (control/aifo.p4). Two slots share a register, and all registers are accessed at the same
// time; a tree of additions follows.
#ifndef FRONTAGE_TNA_WINDOW_P4
#define FRONTAGE_TNA_WINDOW_P4

// Ranks are stored as 255 - rank, so that a slot that was never written holds the largest rank and never counts as smaller.
struct ranks_t {
    bit<8> even;
    bit<8> odd;
}

// The slots of a pair that hold a smaller rank: one of four bits, as predicate() returns it.
const bit<8> SMALLER_EVEN = 1 << 1;
const bit<8> SMALLER_ODD = 1 << 2;
const bit<8> SMALLER_BOTH = 1 << 3;

// The slots `number` and `number` + 1.
control WindowPair(in aifo_t aifo, in port_t port, in bit<8> inverted, out bit<8> smaller)(bit<8> number) {
    Register<ranks_t, port_t>(PORTS) inverted_ranks;
    bit<8> found;

    RegisterAction<ranks_t, port_t, bit<8>>(inverted_ranks) compare = {
        void apply(inout ranks_t ranks, out bit<8> result) {
            result = this.predicate(ranks.even > inverted, ranks.odd > inverted);
        }
    };

    RegisterAction<ranks_t, port_t, bit<8>>(inverted_ranks) replace_even = {
        void apply(inout ranks_t ranks, out bit<8> result) {
            result = this.predicate(ranks.even > inverted, ranks.odd > inverted);
            ranks.even = inverted;
        }
    };

    RegisterAction<ranks_t, port_t, bit<8>>(inverted_ranks) replace_odd = {
        void apply(inout ranks_t ranks, out bit<8> result) {
            result = this.predicate(ranks.even > inverted, ranks.odd > inverted);
            ranks.odd = inverted;
        }
    };

    action compare_only() {
        found = compare.execute(port);
    }

    action write_even() {
        found = replace_even.execute(port);
    }

    action write_odd() {
        found = replace_odd.execute(port);
    }

    // One table per register, because each condition needs a table of the stage.
    @hidden table access {
        key = { aifo.slot: ternary; }
        actions = { compare_only; write_even; write_odd; NoAction; }
        const entries = {
            number: write_even();
            number + 1: write_odd();
            _: compare_only(); // not as the default action, which cannot use a register
        }
        const default_action = NoAction();
        size = 4;
    }

    action set_smaller(bit<8> count) {
        smaller = count;
    }

    // Slots at and beyond the length of the window do not count.
    @hidden table counting {
        key = {
            found: ternary;
            aifo.window: range;
        }
        actions = { set_smaller; }
        const entries = {
            (SMALLER_BOTH, number + 2 .. 255): set_smaller(2);
            (SMALLER_EVEN, number + 1 .. 255): set_smaller(1);
            (SMALLER_BOTH, number + 1 .. 255): set_smaller(1);
            (SMALLER_ODD, number + 2 .. 255): set_smaller(1);
        }
        const default_action = set_smaller(0);
        size = 4;
    }

    apply {
        found = 0;
        access.apply();
        counting.apply();
    }
}

control Window(inout aifo_t aifo, in port_t port, in bit<8> rank) {
    WindowPair(0) pair0;
    WindowPair(2) pair1;
    WindowPair(4) pair2;
    WindowPair(6) pair3;
    WindowPair(8) pair4;
    WindowPair(10) pair5;
    WindowPair(12) pair6;
    WindowPair(14) pair7;
    WindowPair(16) pair8;
    WindowPair(18) pair9;
    bit<8> inverted;
    bit<8> smaller0;
    bit<8> smaller1;
    bit<8> smaller2;
    bit<8> smaller3;
    bit<8> smaller4;
    bit<8> smaller5;
    bit<8> smaller6;
    bit<8> smaller7;
    bit<8> smaller8;
    bit<8> smaller9;

    apply {
        inverted = ~rank;
        pair0.apply(aifo, port, inverted, smaller0);
        pair1.apply(aifo, port, inverted, smaller1);
        pair2.apply(aifo, port, inverted, smaller2);
        pair3.apply(aifo, port, inverted, smaller3);
        pair4.apply(aifo, port, inverted, smaller4);
        pair5.apply(aifo, port, inverted, smaller5);
        pair6.apply(aifo, port, inverted, smaller6);
        pair7.apply(aifo, port, inverted, smaller7);
        pair8.apply(aifo, port, inverted, smaller8);
        pair9.apply(aifo, port, inverted, smaller9);
        smaller0 = smaller0 + smaller1;
        smaller2 = smaller2 + smaller3;
        smaller4 = smaller4 + smaller5;
        smaller6 = smaller6 + smaller7;
        smaller8 = smaller8 + smaller9;
        smaller0 = smaller0 + smaller2;
        smaller4 = smaller4 + smaller6;
        smaller0 = smaller0 + smaller4;
        aifo.smaller_ranks = smaller0 + smaller8;
    }
}

#endif
