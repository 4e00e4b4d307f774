// SPDX-License-Identifier: Apache-2.0
// AIFO, admission-in first-out (Yu et al., SIGCOMM 2021): approximates a PIFO queue with one FIFO queue, by admission
// control. A sliding window holds W sampled ranks. With c packets in a queue of capacity C, AIFO admits a packet iff
//
//     c <= k * C   or   quantile <= 1 / (1 - k) * (C - c) / C,   where quantile = smaller / W
//
// This equals c <= floor(C * (1 - smaller * (1 - k) / W)). A table holds this limit of c for each value of `smaller`
// (docs/aifo.md has the algebra).
//
//     smaller = number of smaller ranks in the window -> limit -> c <= limit ? admit, c + 1 : drop
//
// One packet in `sample_interval` enters the window after the comparison, dropped packets included. Ingress counts
// admitted packets; worker packets correct the count with the queue depth that egress sees.
control Aifo(inout metadata_t meta) {
    Sampler() sampler;
    WindowTail() window_tail;
    Window() window; // window.p4 of the architecture
    QueueDepth() queue_depth;
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
        bit<1> refused;
        queue_depth.apply(meta, refused);
        if (refused == 1) {
            meta.verdict = DROP_AIFO;
            refusals.apply(meta.rank);
        }
    }
}
