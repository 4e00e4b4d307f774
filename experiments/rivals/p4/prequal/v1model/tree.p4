// SPDX-License-Identifier: Apache-2.0
// Prequal's choice of a server (Wydrowski et al., NSDI 2024) instead of the tournament trees (p4src/v1model/tree.p4), with their leaves and entries.
// Servers report with each packet, so a probe reads the switch's own registers and is answered at once:
//
//     requests in flight   the score of the server: with the policy cclb4-current, N_AF and the connections assigned since the last report
//     latency              RPT of the server's packets, as a code of the IPv6 carrier, with a moving average over about eight packets
//
// Each new connection starts three probes of random servers, whose results later connections use. The pool of a VIP holds eight results, the
// newest first. A result leaves the pool after REUSE connections, after one to two ticks of 1.05 s, or when a newer one needs its room. Besides,
// each connection removes a result, in turn the worst and the oldest.
//
// A result is hot if its requests in flight exceed the second largest of the last twelve probes, which is their quantile of 0.84. The connection
// goes to the cold result with the lowest latency, or else to the hot one with the fewest requests in flight. An empty pool: to a random server.
#ifndef FRONTAGE_V1MODEL_TREE_P4
#define FRONTAGE_V1MODEL_TREE_P4

#ifndef REUSE
#define REUSE 4
#endif

// The fields of a result: remaining uses (4), zero for none | SID (12) | requests in flight (16) | latency (16) | tick (16)
#define USES(p) p[63:60]
#define SID(p) p[59:48]
#define IN_FLIGHT(p) p[47:32]
#define LATENCY(p) p[31:16]
#define TICK(p) p[15:0]

typedef bit<64> probe_t;

struct pool_t {
    probe_t p0;
    probe_t p1;
    probe_t p2;
    probe_t p3;
    probe_t p4;
    probe_t p5;
    probe_t p6;
    probe_t p7;
}

// The results of a VIP's probes that are not too old, or their new state.
control Pool(in bit<1> writes, in vip_id_t vip_id, in tick_t now, inout pool_t pool) {
#define RESULT(n) register<probe_t>(VIPS) result##n;
    RESULT(0) RESULT(1) RESULT(2) RESULT(3) RESULT(4) RESULT(5) RESULT(6) RESULT(7)

#define READ_RESULT(n) result##n.read(pool.p##n, (bit<32>)vip_id); if (now - TICK(pool.p##n) > 1) { pool.p##n = 0; }
#define WRITE_RESULT(n) result##n.write((bit<32>)vip_id, pool.p##n);
    apply {
        if (writes == 1) {
            WRITE_RESULT(0) WRITE_RESULT(1) WRITE_RESULT(2) WRITE_RESULT(3)
            WRITE_RESULT(4) WRITE_RESULT(5) WRITE_RESULT(6) WRITE_RESULT(7)
        } else {
            READ_RESULT(0) READ_RESULT(1) READ_RESULT(2) READ_RESULT(3)
            READ_RESULT(4) READ_RESULT(5) READ_RESULT(6) READ_RESULT(7)
        }
    }
}

// The requests in flight of the last twelve probes of a VIP, the newest in the lowest bits.
struct loads_t {
    bit<64> w0;
    bit<64> w1;
    bit<64> w2;
}

control RecentLoads(in bit<1> writes, in vip_id_t vip_id, inout loads_t loads) {
    register<bit<64>>(VIPS) newest;
    register<bit<64>>(VIPS) middle;
    register<bit<64>>(VIPS) oldest;

    apply {
        if (writes == 1) {
            newest.write((bit<32>)vip_id, loads.w0);
            middle.write((bit<32>)vip_id, loads.w1);
            oldest.write((bit<32>)vip_id, loads.w2);
        } else {
            newest.read(loads.w0, (bit<32>)vip_id);
            middle.read(loads.w1, (bit<32>)vip_id);
            oldest.read(loads.w2, (bit<32>)vip_id);
        }
    }
}

// Keeps the two largest values.
control Largest(in bit<64> word, inout bit<16> largest, inout bit<16> second) {
#define RANK(value) if (value > largest) { second = largest; largest = value; } else if (value > second) { second = value; }
    apply {
        RANK(word[15:0]) RANK(word[31:16]) RANK(word[47:32]) RANK(word[63:48])
    }
}

// Order of results: cold ones by latency, then hot ones by requests in flight. Finds the first and the last of this order.
struct order_t {
    bit<16> threshold; // of requests in flight
    bit<4> best;       // 8: none
    bit<17> best_key;
    bit<4> worst;
    bit<17> worst_key;
    bit<12> best_sid;
}

control Order(in probe_t probe, in bit<4> number, inout order_t order) {
    apply {
        bit<17> key = 1w0 ++ LATENCY(probe);
        if (IN_FLIGHT(probe) > order.threshold) {
            key = 1w1 ++ IN_FLIGHT(probe);
        }
        if (USES(probe) != 0) {
            if (order.best == 8 || key < order.best_key) {
                order.best = number;
                order.best_key = key;
                order.best_sid = SID(probe);
            }
            if (order.worst == 8 || key >= order.worst_key) {
                order.worst = number; // the oldest of equals
                order.worst_key = key;
            }
        }
    }
}

#define ORDER(n) order_of.apply(pool.p##n, n, order);

control Remove(in bit<4> number, inout pool_t pool) {
    apply {
        if (number < 8) {
            if (number == 0) { pool.p0 = pool.p1; }
            if (number <= 1) { pool.p1 = pool.p2; }
            if (number <= 2) { pool.p2 = pool.p3; }
            if (number <= 3) { pool.p3 = pool.p4; }
            if (number <= 4) { pool.p4 = pool.p5; }
            if (number <= 5) { pool.p5 = pool.p6; }
            if (number <= 6) { pool.p6 = pool.p7; }
            pool.p7 = 0;
        }
    }
}

// Counts a new connection of the server in its results.
control Use(in bit<12> sid, in bit<16> unit, in bit<4> used, in bit<4> number, inout probe_t probe) {
    apply {
        if (SID(probe) == sid && USES(probe) != 0) {
            IN_FLIGHT(probe) = IN_FLIGHT(probe) |+| unit;
            if (number == used) {
                USES(probe) = USES(probe) - 1;
            }
        }
    }
}

control Tree(inout metadata_t meta) {
    TreeLeaf() leaf;
    Pool() results;
    RecentLoads() recent_loads;
    Largest() largest_of;
    Order() order_of;
    Use() use;
    Remove() remove;
    register<bit<32>>(TREE_SLOTS) servers;   // what a leaf sends up: headroom (16) | SID (16)
    register<bit<16>>(TREE_SLOTS) latencies; // in 1/256 of a code
    register<bit<1>>(VIPS) turns;            // 0: the worst result is removed next; 1: the oldest one
    pool_t pool;
    loads_t loads;
    order_t order;
    bit<32> random_state;
    bit<32> slot;
    bit<32> server;
    bit<16> latency;
    bit<2> probes;
    bit<12> first_sid;
    bit<12> second_sid;
    bit<1> turn;

    // Reads a random slot, like two-choices.
    action draw() {
        random_state = random_state * 1664525 + 1013904223;
        slot = (bit<32>)meta.tree_base + (random_state >> (32 - meta.tree_depth));
        servers.read(server, slot);
    }

    action update() {
        meta.tree.op = meta.resubmit_tree_op;
        meta.tree.slot = meta.resubmit_slot;
        meta.tree.sid = meta.resubmit_sid;
        meta.tree.score = meta.flow_unit;
    }

    action add_result() {
        latencies.read(latency, slot);
        pool.p7 = pool.p6;
        pool.p6 = pool.p5;
        pool.p5 = pool.p4;
        pool.p4 = pool.p3;
        pool.p3 = pool.p2;
        pool.p2 = pool.p1;
        pool.p1 = pool.p0;
        pool.p0 = (bit<4>)REUSE ++ server[11:0] ++ (16w0xffff - server[31:16]) ++ latency ++ meta.now;
        loads.w2 = loads.w2[47:0] ++ loads.w1[63:48];
        loads.w1 = loads.w1[47:0] ++ loads.w0[63:48];
        loads.w0 = loads.w0[47:0] ++ (16w0xffff - server[31:16]);
        second_sid = first_sid;
        first_sid = server[11:0];
        probes = probes + 1;
    }

    // A server that this connection has probed is drawn again, like a free slot.
#define PROBE draw(); \
    if (server[31:16] != 0 && probes < 3 && (probes == 0 || server[11:0] != first_sid) \
        && (probes < 2 || server[11:0] != second_sid)) { add_result(); }
#define FALL_BACK draw(); if (meta.tree.best == 0 && server[31:16] != 0) { meta.tree.best = server; }
#define EIGHT_TIMES(x) x x x x x x x x

#define USE(n) use.apply(meta.tree.sid[11:0], meta.flow_unit, order.best, n, pool.p##n);
#define DROP_USED(n) if (order.best == n && USES(pool.p##n) == 0) { remove.apply(n, pool); }
#define IS_OLDEST(n) if (USES(pool.p##n) != 0) { order.worst = n; }
#define ALL(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7)

    apply {
        if (meta.second_pass == 1) {
            update();
        }
        if (meta.tree.op != TREE_NONE && meta.tree.op != TREE_READ) {
            leaf.apply(meta.tree);
            servers.write((bit<32>)meta.tree.slot, meta.tree.best);
            if (meta.tree.is_report == 1 && meta.has_cookie_rank == 1) {
                latencies.read(latency, (bit<32>)meta.tree.slot);
                latency = latency - (latency >> 3) + ((bit<16>)meta.cookie_rank << 5);
                latencies.write((bit<32>)meta.tree.slot, latency);
            }
        }
        if (meta.tree.op == TREE_READ || meta.tree.op == TREE_ADD) {
            random_state = meta.connection_hash;
            pool = { 0, 0, 0, 0, 0, 0, 0, 0 };
            loads = { 0, 0, 0 };
            order = { 0, 8, 0, 8, 0, 0 };
            results.apply(0, meta.vip_id, meta.now, pool);
            recent_loads.apply(0, meta.vip_id, loads);
            bit<16> largest = 0;
            largest_of.apply(loads.w0, largest, order.threshold);
            largest_of.apply(loads.w1, largest, order.threshold);
            largest_of.apply(loads.w2, largest, order.threshold);

            ALL(ORDER)
            if (meta.tree.op == TREE_READ) {
                meta.tree.best = 0;
                if (order.best != 8) {
                    meta.tree.best = 16w0xffff ++ 4w0 ++ order.best_sid;
                }
                EIGHT_TIMES(FALL_BACK)
            } else {
                ALL(USE)
                ALL(DROP_USED)

                order.worst = 8;
                turns.read(turn, (bit<32>)meta.vip_id);
                turns.write((bit<32>)meta.vip_id, ~turn);
                if (turn == 0) {
                    ALL(ORDER)
                } else {
                    ALL(IS_OLDEST)
                }
                remove.apply(order.worst, pool);

                probes = 0;
                first_sid = 0;
                second_sid = 0;
                EIGHT_TIMES(PROBE)
                results.apply(1, meta.vip_id, meta.now, pool);
                recent_loads.apply(1, meta.vip_id, loads);
            }
        }
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
