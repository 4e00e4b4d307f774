// SPDX-License-Identifier: Apache-2.0
// The tournament trees (p4src/v1model/tree.p4) with scores that also use RPT. Each server's packets carry the remaining time of the flow that
// they belong to, so their moving average, over about eight packets, is near the mean remaining time of the server's active flows.
//
//     without WORK   the score of the loads, and a part of a flow for each doubling of the remaining time
//     with WORK      the least work left, the product of load and remaining time, as the sum of their logarithms
//
// A report that differs from the last one clears the count of connections assigned since then, so the remaining time counts in steps.
#ifndef FRONTAGE_V1MODEL_TREE_P4
#define FRONTAGE_V1MODEL_TREE_P4

// Units of the logarithm, as of RPT's codes, for each doubling
#define DOUBLING 8

// Logarithm of a new connection, until the server's next report: a load of three flows becomes one of four
#define LOG_UNIT 3

// Without WORK, a doubling of the remaining time counts 2^(12 - RPT_SHIFT) / 2. A flow counts 16, or 8 if it ends soon and alpha is 0.5.
#ifndef RPT_SHIFT
#define RPT_SHIFT 10
#endif

// The logarithm of a load, in eighths of a doubling. A load of 0 has 0.
control LoadLogarithm(in bit<16> load, out bit<16> logarithm) {
    bit<16> mantissa;

#define HALVE(n) if (mantissa >= (16w8 << n)) { mantissa = mantissa >> n; logarithm = logarithm + n * DOUBLING; }
    apply {
        mantissa = load;
        logarithm = 0;
        HALVE(8) HALVE(4) HALVE(2) HALVE(1)
        // Between 8 and 15, the mantissa is linear, as in RPT's codes.
        logarithm = logarithm + mantissa;
    }
}

control Tree(inout metadata_t meta) {
    Tournament() tournament;
    LoadLogarithm() load_logarithm;
    register<bit<16>>(TREE_SLOTS) remaining_times; // in 1/256 of a code
    bit<16> remaining;

    action update() {
        meta.tree.op = meta.resubmit_tree_op;
        meta.tree.slot = meta.resubmit_slot;
        meta.tree.sid = meta.resubmit_sid;
#ifdef WORK
        meta.tree.score = LOG_UNIT;
#else
        meta.tree.score = meta.flow_unit;
#endif
    }

    action average() {
        remaining_times.read(remaining, (bit<32>)meta.tree.slot);
        remaining = remaining - (remaining >> 3) + ((bit<16>)meta.cookie_rank << 5);
        remaining_times.write((bit<32>)meta.tree.slot, remaining);
    }

    apply {
        if (meta.second_pass == 1) {
            update();
        }
        if (meta.tree.op == TREE_SET && meta.tree.is_report == 1 && meta.has_cookie_rank == 1) {
            average();
#ifdef WORK
            if (meta.tree.score != 0) {
                bit<16> logarithm;
                load_logarithm.apply(meta.tree.score, logarithm);
                meta.tree.score = logarithm + (8w0 ++ remaining[15:11] ++ 3w0);
            }
#else
            meta.tree.score = meta.tree.score |+| (remaining >> RPT_SHIFT);
#endif
        }
        tournament.apply(meta.tree);
    }
}

// As in the shipped program
control TreeChange(inout metadata_t meta, in bit<8> tree_op) {
    apply {
        meta.verdict = VERDICT_RESUBMIT;
        meta.second_pass = 1;
        meta.resubmit_tree_op = tree_op;
        meta.resubmit_slot = meta.slot;
        meta.resubmit_sid = meta.sid;
        meta.resubmit_outcome = meta.outcome;
    }
}

control Resume(inout metadata_t meta) {
    apply {
        meta.sid = meta.resubmit_sid;
        meta.outcome = meta.resubmit_outcome;
    }
}

#endif
