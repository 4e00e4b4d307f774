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
    // P4 has neither loops nor arrays of controls, so each slot of the window is instantiated and applied by hand.
    WindowSlot(0) slot0;
    WindowSlot(1) slot1;
    WindowSlot(2) slot2;
    WindowSlot(3) slot3;
    WindowSlot(4) slot4;
    WindowSlot(5) slot5;
    WindowSlot(6) slot6;
    WindowSlot(7) slot7;
    WindowSlot(8) slot8;
    WindowSlot(9) slot9;
    WindowSlot(10) slot10;
    WindowSlot(11) slot11;
    WindowSlot(12) slot12;
    WindowSlot(13) slot13;
    WindowSlot(14) slot14;
    WindowSlot(15) slot15;
    WindowSlot(16) slot16;
    WindowSlot(17) slot17;
    WindowSlot(18) slot18;
    WindowSlot(19) slot19;
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
            slot0.apply(meta.aifo, meta.egress_port, meta.rank);
            slot1.apply(meta.aifo, meta.egress_port, meta.rank);
            slot2.apply(meta.aifo, meta.egress_port, meta.rank);
            slot3.apply(meta.aifo, meta.egress_port, meta.rank);
            slot4.apply(meta.aifo, meta.egress_port, meta.rank);
            slot5.apply(meta.aifo, meta.egress_port, meta.rank);
            slot6.apply(meta.aifo, meta.egress_port, meta.rank);
            slot7.apply(meta.aifo, meta.egress_port, meta.rank);
            slot8.apply(meta.aifo, meta.egress_port, meta.rank);
            slot9.apply(meta.aifo, meta.egress_port, meta.rank);
            slot10.apply(meta.aifo, meta.egress_port, meta.rank);
            slot11.apply(meta.aifo, meta.egress_port, meta.rank);
            slot12.apply(meta.aifo, meta.egress_port, meta.rank);
            slot13.apply(meta.aifo, meta.egress_port, meta.rank);
            slot14.apply(meta.aifo, meta.egress_port, meta.rank);
            slot15.apply(meta.aifo, meta.egress_port, meta.rank);
            slot16.apply(meta.aifo, meta.egress_port, meta.rank);
            slot17.apply(meta.aifo, meta.egress_port, meta.rank);
            slot18.apply(meta.aifo, meta.egress_port, meta.rank);
            slot19.apply(meta.aifo, meta.egress_port, meta.rank);
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
