// SPDX-License-Identifier: Apache-2.0
// Egress of the edge: the thresholds of ports, and ECN marks as in control/ecn.p4. Without schedulers, ingress does not need the
// table of ports (control/scheduler.p4), so egress has it.
#ifndef FRONTAGE_TNA_FOLDED_MARKS_P4
#define FRONTAGE_TNA_FOLDED_MARKS_P4

control Thresholds(in port_t egress_port, inout bit<1> has_threshold, inout depth_t threshold) {
    action use_fifo(depth_t ecn_threshold) {
        threshold = ecn_threshold;
        has_threshold = 1;
    }

    table port {
        key = { egress_port: exact @name("egress_port"); }
        actions = { use_fifo; NoAction; }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        port.apply();
    }
}

// Without a threshold, the port's packets get no marks.
control Marks(inout headers_t hdr, in depth_t enqueue_depth, in bit<1> has_threshold, in depth_t port_threshold) {
    bit<32> depth;
    bit<32> threshold;
    bit<32> below; // how many packets are missing for a mark

    // An ALU may not subtract fields of different sizes.
    action read_depth() {
        IN_HASH { depth = 13w0 ++ enqueue_depth; }
    }

    action read_threshold() {
        IN_HASH { threshold = 13w0 ++ port_threshold; }
    }

    action compare() {
        below = threshold |-| depth;
    }

    action mark4() {
        hdr.ipv4.tos[1:0] = ECN_CE;
    }

    action mark6() {
        hdr.ipv6.traffic_class[1:0] = ECN_CE;
    }

    @hidden table marking {
        key = {
            has_threshold: ternary;
            below: ternary;
            hdr.ipv4.isValid(): ternary;
            hdr.ipv4.tos: ternary;
            hdr.ipv6.isValid(): ternary;
            hdr.ipv6.traffic_class: ternary;
        }
        actions = { mark4; mark6; NoAction; }
        const entries = {
            (1, 0, true, 0 &&& 3, _, _): NoAction(); // not ECN-capable
            (1, 0, true, _, _, _): mark4();
            (1, 0, _, _, true, 0 &&& 3): NoAction();
            (1, 0, _, _, true, _): mark6();
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        read_depth();
        read_threshold();
        compare();
        marking.apply();
    }
}

#endif
