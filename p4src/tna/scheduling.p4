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
            if (value + 1 >= every) {
                value = 0;
            } else {
                value = value + 1;
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
            if (value + 1 >= length) {
                value = 0;
            } else {
                value = value + 1;
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
    bit<32> limit; // of a worker: the depth
    bit<32> capacity;

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
            depth = limit;
            result = 0;
        }
    };

    action read_limit() {
        IN_HASH { limit = 13w0 ++ meta.aifo.limit; }
    }

    action read_capacity() {
        IN_HASH { capacity = 13w0 ++ meta.aifo.capacity; }
    }

    action read_depth() {
        IN_HASH { limit = 13w0 ++ meta.depth_after; }
    }

    apply {
        read_capacity();
        if (meta.direction == Direction.WORKER) {
            read_depth();
            refused = correct.execute(meta.egress_port);
        } else {
            read_limit();
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

// The bounds of two priorities of a port: the rank of the last packet that got the priority, less all decrements since.
struct bounds_t {
    bit<8> first;
    bit<8> second; // more urgent
}

// The bounds of a pair that are not above the packet's rank: one of four bits, as predicate() returns it.
const bit<8> BOUNDS_NONE = 1 << 0;
const bit<8> BOUNDS_SECOND = 1 << 2;

// The packet gets the first priority whose bound is not above its rank. Its rank becomes that bound.
control PriorityPair(inout metadata_t meta)(bit<3> priority) {
    Register<bounds_t, port_t>(PORTS) bounds;
    bit<8> found;

    RegisterAction<bounds_t, port_t, bit<8>>(bounds) lower = {
        void apply(inout bounds_t pair) {
            pair.first = pair.first |-| meta.bound_decrement;
            pair.second = pair.second |-| meta.bound_decrement;
        }
    };

    RegisterAction<bounds_t, port_t, bit<8>>(bounds) push_up = {
        void apply(inout bounds_t pair, out bit<8> result) {
            result = this.predicate(meta.rank >= pair.first, meta.rank >= pair.second);
            if (meta.rank >= pair.first) {
                pair.first = meta.rank;
            } else if (meta.rank >= pair.second) {
                pair.second = meta.rank;
            }
        }
    };

    apply {
        if (meta.direction == Direction.WORKER) {
            lower.execute(meta.egress_port);
        } else if (meta.has_priority == 0) {
            found = push_up.execute(meta.egress_port);
            if (found != BOUNDS_NONE) {
                meta.has_priority = 1;
                meta.priority = priority;
                if (found == BOUNDS_SECOND) {
                    meta.priority = priority + 1;
                }
            }
        }
    }
}

// The two most urgent priorities. A packet that gets none of the others gets the last one; if its rank is below that
// bound, too, the other bounds have to decrease.
control MostUrgentPair(inout metadata_t meta) {
    Register<bounds_t, port_t>(PORTS) bounds;
    bit<8> found;
    bit<8> old_bound;

    RegisterAction<bounds_t, port_t, bit<8>>(bounds) lower = {
        void apply(inout bounds_t pair) {
            pair.first = pair.first |-| meta.bound_decrement;
        }
    };

    RegisterAction2<bounds_t, port_t, bit<8>, bit<8>>(bounds) push_up = {
        void apply(inout bounds_t pair, out bit<8> result, out bit<8> before) {
            result = this.predicate<bit<8>>(meta.rank >= pair.first, meta.rank >= pair.second);
            before = pair.second;
            if (meta.rank >= pair.first) {
                pair.first = meta.rank;
            } else {
                pair.second = meta.rank;
            }
        }
    };

    apply {
        if (meta.direction == Direction.WORKER) {
            lower.execute(meta.egress_port);
        } else if (meta.has_priority == 0) {
            found = push_up.execute(meta.egress_port, old_bound);
            meta.has_priority = 1;
            meta.priority = (bit<3>)(SP_PIFO_MOST_URGENT - 1);
            meta.bound_decrement = 0;
            if (found == BOUNDS_NONE || found == BOUNDS_SECOND) {
                meta.priority = (bit<3>)SP_PIFO_MOST_URGENT;
                meta.bound_decrement = old_bound |-| meta.rank;
            }
        }
    }
}

control PriorityBounds(inout metadata_t meta) {
    PriorityPair(0) pair0;
    PriorityPair(2) pair1;
    PriorityPair(4) pair2;
    MostUrgentPair() pair3;

    apply {
        pair0.apply(meta);
        pair1.apply(meta);
        pair2.apply(meta);
        pair3.apply(meta);
    }
}

// Ingress: reports that the other bounds have to decrease. A worker packet carries the report to all registers.
control BoundReport(inout metadata_t meta, inout MirrorType_t mirror_type) {
    WorkerMirror() worker_mirror;

    apply {
        if (meta.bound_decrement != 0 && meta.clone_session == 0 && meta.direction != Direction.WORKER
            && (meta.verdict == VERDICT_CONTINUE || meta.verdict == VERDICT_REPLY)) {
            meta.has_queue = 1;
            worker_mirror.apply(meta, mirror_type);
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
        count = count & meta.report_mask; // a condition may not combine two fields
        if (count == 0) {
            meta.report_departure = 1;
            meta.depth_after = depth_after;
        }
    }
}

#endif
