// SPDX-License-Identifier: Apache-2.0
// RIFO, range-in first-out (Mostafaei et al., arXiv 2308.07442), instead of AIFO (p4src/control/aifo.p4), with AIFO's entries. It compares a
// packet's position in the range of recent ranks with the free share of the queue. With c packets in a queue of capacity C, and the smallest
// and largest rank since the range last restarted, RIFO admits a packet of rank r iff
//
//     c <= k * C   or   (r - smallest) / (largest - smallest) <= (C - c) / C
//
// which is (r - smallest) * C <= (largest - smallest) * (C - c), without a division. The first packet of every `sample_interval` restarts the
// range; a range of one value admits it. The table has floor(k * C) as the limit for a window of smaller ranks.
//
// With RIFO_PUBLISHED_CODE, the second condition is that of the authors' programs (mostafaei/RIFO: rifo.p4, RIFOOutputPort.java):
// (largest - r) / (largest - smallest) >= (C - c) / C. Its left side is 1 for the most urgent packet.

#ifdef RIFO_PUBLISHED_CODE
#define NOT_URGENT_ENOUGH(free) (bit<32>)(largest - meta.rank) * (bit<32>)meta.aifo.capacity < free
#else
#define NOT_URGENT_ENOUGH(free) (bit<32>)(meta.rank - smallest) * (bit<32>)meta.aifo.capacity > free
#endif

// Returns the range of the port's ranks since the last restart, including this packet's.
control RankRange(in metadata_t meta, in bit<1> restarts, out bit<8> smallest, out bit<8> largest) {
    register<bit<8>>(PORTS) smallest_ranks;
    register<bit<8>>(PORTS) largest_ranks;

    apply {
        smallest_ranks.read(smallest, (bit<32>)meta.egress_port);
        if (restarts == 1 || meta.rank < smallest) {
            smallest = meta.rank;
        }
        smallest_ranks.write((bit<32>)meta.egress_port, smallest);

        largest_ranks.read(largest, (bit<32>)meta.egress_port);
        if (restarts == 1 || meta.rank > largest) {
            largest = meta.rank;
        }
        largest_ranks.write((bit<32>)meta.egress_port, largest);
    }
}

// Depth of a port's queue, and the decision to admit, like QueueDepth (v1model/scheduling.p4).
control RangeAdmission(in metadata_t meta, in bit<8> smallest, in bit<8> largest, out bit<1> refused) {
    register<depth_t>(PORTS) depths;

    apply {
        depth_t depth;
        refused = 0;
        depths.read(depth, (bit<32>)meta.egress_port);
        if (meta.direction == Direction.WORKER) {
            depth = meta.depth_after;
        } else {
            bit<32> free = (bit<32>)(largest - smallest) * (bit<32>)(meta.aifo.capacity |-| depth);
            if (depth > meta.aifo.limit && NOT_URGENT_ENOUGH(free)) {
                refused = 1;
            } else if (depth < meta.aifo.capacity) {
                depth = depth + 1;
            }
        }
        depths.write((bit<32>)meta.egress_port, depth);
    }
}

control Aifo(inout metadata_t meta) {
    Sampler() restart;
    RankRange() range;
    RangeAdmission() admission;
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
        bit<8> smallest = 0;
        bit<8> largest = 0;
        if (meta.direction != Direction.WORKER) {
            bit<1> restarts;
            restart.apply(meta.egress_port, meta.aifo.sample_interval, restarts);
            range.apply(meta, restarts, smallest, largest);
            meta.aifo.smaller_ranks = meta.aifo.window;
            limit.apply();
        }
        bit<1> refused;
        admission.apply(meta, smallest, largest, refused);
        if (refused == 1) {
            meta.verdict = DROP_AIFO;
            refusals.apply(meta.rank);
        }
    }
}
