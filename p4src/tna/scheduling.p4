// SPDX-License-Identifier: Apache-2.0
// Registers of the schedulers (control/aifo.p4, control/sppifo.p4), one cell per port, each accessed once per packet.
// All but the last, Departures, are in ingress.
#ifndef FRONTAGE_TNA_SCHEDULING_P4
#define FRONTAGE_TNA_SCHEDULING_P4

// Samples one packet in `every`, beginning with the first.
control Sampler(in port_t port, in bit<16> every, out bit<1> sampled) {
    Register<bit<16>, port_t>(PORTS) counts;

    RegisterAction<bit<16>, port_t, bit<1>>(counts) count = {
        void apply(inout bit<16> value, out bit<1> result) {
            result = 0;
            if (value == 0) {
                result = 1;
            }
            value = value + 1;
            if (value >= every) {
                value = 0;
            }
        }
    };

    apply {
        sampled = count.execute(port);
    }
}

// Returns the slot of the oldest rank in the window, which the next sampled rank overwrites.
control WindowTail(in port_t port, in bit<8> length, out bit<8> slot) {
    Register<bit<8>, port_t>(PORTS) oldest;

    RegisterAction<bit<8>, port_t, bit<8>>(oldest) advance = {
        void apply(inout bit<8> value, out bit<8> result) {
            result = value;
            value = value + 1;
            if (value >= length) {
                value = 0;
            }
        }
    };

    apply {
        slot = advance.execute(port);
    }
}

// Depth of a port's queue, and the decision to admit. A worker packet sets the depth, an admitted packet adds one, up
// to the capacity.
control QueueDepth(in metadata_t meta, out bit<1> refused) {
    Register<bit<32>, port_t>(PORTS) depths;
    bit<32> limit;
    bit<32> capacity;
    bit<32> depth_after;

    RegisterAction<bit<32>, port_t, bit<1>>(depths) admit = {
        void apply(inout bit<32> depth, out bit<1> result) {
            result = 0;
            if (depth > limit) {
                result = 1;
            } else if (depth < capacity) {
                depth = depth + 1;
            }
        }
    };

    RegisterAction<bit<32>, port_t, bit<1>>(depths) correct = {
        void apply(inout bit<32> depth, out bit<1> result) {
            depth = depth_after;
            result = 0;
        }
    };

    apply {
        limit = (bit<32>)meta.aifo.limit;
        capacity = (bit<32>)meta.aifo.capacity;
        depth_after = (bit<32>)meta.depth_after;
        if (meta.direction == Direction.WORKER) {
            refused = correct.execute(meta.egress_port);
        } else {
            refused = admit.execute(meta.egress_port);
        }
    }
}

control RefusalCounter(in bit<8> rank) {
    Counter<bit<64>, bit<5>>(RANK_BANDS, CounterType_t.PACKETS_AND_BYTES) refusals;

    apply {
        refusals.count(rank[7:3]);
    }
}

// The bound of one priority of a port: the rank of the last packet that got this priority, less all decrements since.
control PriorityBound(inout metadata_t meta)(bit<8> priority) {
    Register<bit<8>, port_t>(PORTS) bounds;
    bit<8> old_bound;

    RegisterAction2<bit<8>, port_t, bit<1>, bit<8>>(bounds) lower = {
        void apply(inout bit<8> bound, out bit<1> taken, out bit<8> before) {
            bound = bound |-| meta.bound_decrement;
            taken = 0;
            before = 0;
        }
    };

    // The packet gets the priority if the bound is at most its rank, which then replaces the bound.
    RegisterAction2<bit<8>, port_t, bit<1>, bit<8>>(bounds) push_up = {
        void apply(inout bit<8> bound, out bit<1> taken, out bit<8> before) {
            taken = 0;
            before = bound;
            if (meta.rank >= bound) {
                taken = 1;
                bound = meta.rank;
            }
        }
    };

    RegisterAction2<bit<8>, port_t, bit<1>, bit<8>>(bounds) replace = {
        void apply(inout bit<8> bound, out bit<1> taken, out bit<8> before) {
            taken = 1;
            before = bound;
            bound = meta.rank;
        }
    };

    apply {
        old_bound = 0;
        if (meta.direction == Direction.WORKER) {
            if (priority != SP_PIFO_MOST_URGENT) {
                lower.execute(meta.egress_port, old_bound);
            }
        } else if (meta.has_priority == 0) {
            // The next bound waits for this result only.
            if (priority == SP_PIFO_MOST_URGENT) {
                meta.has_priority = replace.execute(meta.egress_port, old_bound);
            } else {
                meta.has_priority = push_up.execute(meta.egress_port, old_bound);
            }
            if (meta.has_priority == 1) {
                meta.priority = priority[2:0];
                meta.bound_decrement = old_bound |-| meta.rank;
            }
        }
    }
}

// Egress: counts the packets that leave a port's queue, and reports one in a power of two.
control Departures(inout metadata_t meta, in depth_t depth_after) {
    Register<bit<16>, port_t>(PORTS) departures;

    RegisterAction<bit<16>, port_t, bit<16>>(departures) increment = {
        void apply(inout bit<16> value, out bit<16> result) {
            value = value + 1;
            result = value;
        }
    };

    apply {
        bit<16> count = increment.execute(meta.egress_port);
        if (count & meta.report_mask == 0) {
            meta.report_departure = 1;
            meta.depth_after = depth_after;
        }
    }
}

#endif
