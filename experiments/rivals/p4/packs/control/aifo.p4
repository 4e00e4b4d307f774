// SPDX-License-Identifier: Apache-2.0
// PACKS (Alcoz et al., NSDI 2025, arXiv 2308.00797), instead of AIFO (p4src/control/aifo.p4), with AIFO's window and entries. It admits like
// AIFO, and distributes the admitted packets over strict-priority queues. Queue i of n = 8, counted from the most urgent, holds b_i packets of
// its B_i = floor(C / n). A packet gets the first queue with b_i < B_i and
//
//     quantile <= 1 / (1 - k) * ((B_1 - b_1) + ... + (B_i - b_i)) / C,   where quantile = smaller / W
//
// and is dropped if no queue accepts it. With C less the room of the queues 1 to i as c, this is AIFO's condition, c <= limit (docs/aifo.md).
//
// A port serves its most urgent packets first, so the number of packets that a departing one left behind tells how many each queue holds: the
// least urgent ones remain.

// One queue of a port. `rest` is, for a packet: the port's capacity less the room of the more urgent queues; for a worker packet: the number of
// packets that remain in this queue and the more urgent ones.
control RankedQueue(inout metadata_t meta, inout depth_t rest)(bit<3> priority) {
    register<depth_t>(PORTS) depths;

    apply {
        depth_t capacity = meta.aifo.capacity >> 3;
        depth_t depth;
        depths.read(depth, (bit<32>)meta.egress_port);
        if (meta.direction == Direction.WORKER) {
            if (depth > rest) {
                depth = rest;
            }
            rest = rest - depth;
        } else {
            rest = rest - (capacity - depth);
            if (meta.has_priority == 0 && depth < capacity && rest <= meta.aifo.limit) {
                meta.has_priority = 1;
                meta.priority = priority;
                depth = depth + 1;
            }
        }
        depths.write((bit<32>)meta.egress_port, depth);
    }
}

control RankedQueues(inout metadata_t meta) {
    RankedQueue(7) queue7; // the most urgent
    RankedQueue(6) queue6;
    RankedQueue(5) queue5;
    RankedQueue(4) queue4;
    RankedQueue(3) queue3;
    RankedQueue(2) queue2;
    RankedQueue(1) queue1;
    RankedQueue(0) queue0;

    apply {
        depth_t rest;
        if (meta.direction == Direction.WORKER) {
            rest = meta.depth_after;
            queue0.apply(meta, rest);
            queue1.apply(meta, rest);
            queue2.apply(meta, rest);
            queue3.apply(meta, rest);
            queue4.apply(meta, rest);
            queue5.apply(meta, rest);
            queue6.apply(meta, rest);
            queue7.apply(meta, rest);
        } else {
            rest = meta.aifo.capacity;
            queue7.apply(meta, rest);
            queue6.apply(meta, rest);
            queue5.apply(meta, rest);
            queue4.apply(meta, rest);
            queue3.apply(meta, rest);
            queue2.apply(meta, rest);
            queue1.apply(meta, rest);
            queue0.apply(meta, rest);
        }
    }
}

control Aifo(inout metadata_t meta) {
    Sampler() sampler;
    WindowTail() window_tail;
    Window() window;
    RankedQueues() queues;
    RefusalCounter() refusals;

    action set_limit(depth_t limit) {
        meta.aifo.limit = limit;
    }

    table limit {
        key = {
            meta.egress_port: exact @name("egress_port");
            meta.aifo.smaller_ranks: exact @name("smaller_ranks");
        }
        actions = { set_limit; NoAction; }
        const default_action = NoAction();
        size = AIFO_LIMITS;
    }

    apply {
        if (meta.direction != Direction.WORKER) {
            meta.aifo.slot = AIFO_NO_SLOT;
            bit<1> sampled;
            sampler.apply(meta.egress_port, meta.aifo.sample_interval, sampled);
            if (sampled == 1) {
                window_tail.apply(meta.egress_port, meta.aifo.window, meta.aifo.slot);
            }
            window.apply(meta.aifo, meta.egress_port, meta.rank);
            limit.apply();
        }
        queues.apply(meta);
        if (meta.direction != Direction.WORKER && meta.has_priority == 0) {
            meta.verdict = DROP_AIFO;
            refusals.apply(meta.rank);
        }
    }
}
