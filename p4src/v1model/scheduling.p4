// SPDX-License-Identifier: Apache-2.0
// Registers of the schedulers (control/aifo.p4, control/sppifo.p4), one cell per port, each accessed once per packet.
// All but the last, Departures, are in ingress.
#ifndef FRONTAGE_V1MODEL_SCHEDULING_P4
#define FRONTAGE_V1MODEL_SCHEDULING_P4

// Samples one packet in `every`, beginning with the first.
control Sampler(in port_t port, in bit<16> every, out bit<1> sampled) {
    register<bit<16>>(PORTS) counts;

    apply {
        bit<16> count;
        counts.read(count, (bit<32>)port);
        sampled = 0;
        if (count == 0) {
            sampled = 1;
        }
        count = count + 1;
        if (count >= every) {
            count = 0;
        }
        counts.write((bit<32>)port, count);
    }
}

// Returns the slot of the oldest rank in the window, which the next sampled rank overwrites.
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

// Depth of a port's queue, and the decision to admit. A worker packet sets the depth, an admitted packet adds one, up
// to the capacity.
control QueueDepth(in metadata_t meta, out bit<1> refused) {
    register<depth_t>(PORTS) depths;

    apply {
        depth_t depth;
        refused = 0;
        depths.read(depth, (bit<32>)meta.egress_port);
        if (meta.direction == Direction.WORKER) {
            depth = meta.depth_after;
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

// The bound of one priority of a port: the rank of the last packet that got this priority, less all decrements since.
control PriorityBound(inout metadata_t meta)(bit<8> priority) {
    register<bit<8>>(PORTS) bounds;

    apply {
        bit<8> bound;
        bounds.read(bound, (bit<32>)meta.egress_port);
        if (meta.direction == Direction.WORKER) {
            if (priority != SP_PIFO_MOST_URGENT) {
                bound = bound |-| meta.bound_decrement;
            }
        } else if (meta.has_priority == 0 && (meta.rank >= bound || priority == SP_PIFO_MOST_URGENT)) {
            meta.has_priority = 1;
            meta.priority = priority[2:0];
            meta.bound_decrement = bound |-| meta.rank;
            bound = meta.rank;
        }
        bounds.write((bit<32>)meta.egress_port, bound);
    }
}

control PriorityBounds(inout metadata_t meta) {
    PriorityBound(0) bound0;
    PriorityBound(1) bound1;
    PriorityBound(2) bound2;
    PriorityBound(3) bound3;
    PriorityBound(4) bound4;
    PriorityBound(5) bound5;
    PriorityBound(6) bound6;
    PriorityBound(SP_PIFO_MOST_URGENT) bound7;

    apply {
        bound0.apply(meta);
        bound1.apply(meta);
        bound2.apply(meta);
        bound3.apply(meta);
        bound4.apply(meta);
        bound5.apply(meta);
        bound6.apply(meta);
        bound7.apply(meta);
    }
}

// Egress: counts the packets that leave a port's queue, and reports one in a power of two.
control Departures(inout metadata_t meta, in depth_t depth_after) {
    register<bit<16>>(PORTS) departures;

    apply {
        bit<16> count;
        departures.read(count, (bit<32>)meta.egress_port);
        count = count + 1;
        departures.write((bit<32>)meta.egress_port, count);
        if (count & meta.report_mask == 0) {
            meta.report_departure = 1;
            meta.depth_after = depth_after;
        }
    }
}

#endif
