// Registers of the schedulers (control/aifo.p4, control/sppifo.p4), by port, each read and written once a packet. All but the last are ingress's.
#ifndef FRONTAGE_V1MODEL_SCHEDULING_P4
#define FRONTAGE_V1MODEL_SCHEDULING_P4

// One packet in `every`, the first included.
control Sampler(in port_t port, in bit<16> every, out bit<1> sampled) {
    register<bit<16>>(PORTS) passed;

    apply {
        bit<16> count;
        passed.read(count, (bit<32>)port);
        sampled = 0;
        if (count == 0) {
            sampled = 1;
        }
        count = count + 1;
        if (count >= every) {
            count = 0;
        }
        passed.write((bit<32>)port, count);
    }
}

// The slot of the oldest rank in a window, which the next one takes.
control WindowTail(in port_t port, in bit<8> length, out bit<8> slot) {
    register<bit<8>>(PORTS) oldest;

    apply {
        oldest.read(slot, (bit<32>)port);
        bit<8> next = slot + 1;
        if (next >= length) {
            next = 0;
        }
        oldest.write((bit<32>)port, next);
    }
}

// One rank of a window, as 255 less it: so what was never written is the largest, and larger than nobody's.
control WindowSlot(inout aifo_t aifo, in port_t port, in bit<8> rank)(bit<8> number) {
    register<bit<8>>(PORTS) inverses;

    apply {
        if (number < aifo.window) {
            bit<8> inverse;
            inverses.read(inverse, (bit<32>)port);
            if (inverse > ~rank) {
                aifo.smaller = aifo.smaller + 1;
            }
            if (aifo.slot == number) {
                inverses.write((bit<32>)port, ~rank);
            }
        }
    }
}

// The packets that wait in a port's queue. A worker brings the number; an admitted packet is one more, but a full queue stays full.
control Waiting(in metadata_t meta, out bit<1> refused) {
    register<depth_t>(PORTS) depths;

    apply {
        depth_t depth;
        refused = 0;
        depths.read(depth, (bit<32>)meta.egress_port);
        if (meta.direction == Direction.WORKER) {
            depth = meta.left_behind;
        } else if (depth > meta.aifo.limit) {
            refused = 1;
        } else if (depth < meta.aifo.capacity) {
            depth = depth + 1;
        }
        depths.write((bit<32>)meta.egress_port, depth);
    }
}

control RefusalCounter(in bit<8> rank) {
    counter(RANK_BANDS, CounterType.packets_and_bytes) refusals;

    apply {
        refusals.count((bit<32>)rank[7:3]);
    }
}

// The bound of one of a port's priorities: the rank of the last packet that it took, less what it has sunk since.
control PriorityBound(inout metadata_t meta)(bit<8> priority) {
    register<bit<8>>(PORTS) bounds;

    apply {
        bit<8> bound;
        bounds.read(bound, (bit<32>)meta.egress_port);
        if (meta.direction == Direction.WORKER) {
            if (priority != SP_PIFO_MOST_URGENT) {
                bound = bound |-| meta.sink;
            }
        } else if (meta.placed == 0 && (meta.rank >= bound || priority == SP_PIFO_MOST_URGENT)) {
            meta.placed = 1;
            meta.priority = priority[2:0];
            meta.sink = bound |-| meta.rank;
            bound = meta.rank;
        }
        bounds.write((bit<32>)meta.egress_port, bound);
    }
}

// Egress: counts what leaves a port's queue; one in a power of two is reported.
control Departures(inout metadata_t meta, in depth_t left_behind) {
    register<bit<16>>(PORTS) departures;

    apply {
        bit<16> count;
        departures.read(count, (bit<32>)meta.egress_port);
        count = count + 1;
        departures.write((bit<32>)meta.egress_port, count);
        if (count & meta.report_mask == 0) {
            meta.report = 1;
            meta.left_behind = left_behind;
        }
    }
}

#endif
