// SPDX-License-Identifier: Apache-2.0
// The traffic manager and the recirculation port pass on headers only: metadata become headers, and headers metadata.
#ifndef FRONTAGE_TNA_CROSSING_P4
#define FRONTAGE_TNA_CROSSING_P4

// Ingress: what the parser found, and what a former pass decided.
control Arrival(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md) {
    TunnelArrival() tunnel_arrival;

    action from_port() {
        meta.ingress_port = ig_intr_md.ingress_port;
    }

    action read_clock() {
        IN_HASH { meta.now = 13w0 ++ 1w1 ++ ig_intr_md.ingress_mac_tstamp[47:30]; }
    }

    action handshake_pass() {
        meta.second_pass = 1;
        meta.releases_handshake = 1;
    }

    action worker() {
        meta.direction = Direction.WORKER;
        meta.has_queue = hdr.worker.has_queue;
        meta.egress_port = hdr.worker.egress_port;
        meta.depth_after = hdr.worker.depth_after;
        meta.tree.op = hdr.worker.op;
        meta.tree.slot = hdr.worker.slot;
        meta.tree.score = hdr.worker.score;
        meta.tree.best = hdr.worker.best;
        meta.tree_depth = hdr.worker.depth;
        meta.tree_base = hdr.worker.root;
    }

    // The bounds of priorities are those of the packets of one pipe.
    action worker_of_this_pipe() {
        meta.bound_decrement = hdr.worker.bound_decrement;
    }

    action from_controller() {
        meta.direction = Direction.CONTROLLER;
    }

    // A frame of the controller leaves as it is.
    action send() {
        meta.egress_port = (port_t)hdr.packet_out.slot;
        meta.verdict = VERDICT_REPLY;
        hdr.packet_out.setInvalid();
    }

    apply {
        from_port();
        read_clock();
        if (hdr.second_pass.isValid()) {
            if (hdr.second_pass.kind == SECOND_PASS_HANDSHAKE) {
                handshake_pass();
            } else {
                tunnel_arrival.apply(hdr, meta);
            }
        } else if (hdr.worker.isValid()) {
            worker();
            if (hdr.worker.op != TREE_NONE) {
                meta.writes_root = 1;
            }
            if (hdr.worker.origin_port[8:7] == ig_intr_md.ingress_port[8:7]) {
                worker_of_this_pipe();
            }
        } else if (hdr.packet_out.isValid() && hdr.packet_out.op == PACKET_OUT_SEND) {
            send();
        } else if (hdr.packet_out.isValid()) {
            from_controller();
        }
    }
}

// Why the parser stopped early, and what it cannot count.
control ParseFailure(in headers_t hdr, inout metadata_t meta, in bit<16> parser_error) {
    action set_extension_bytes(bit<16> bytes) {
        meta.extension_bytes = bytes;
    }

    apply {
        if (meta.parse_failure == DROP_NONE) {
            if ((parser_error & PARSER_ERROR_PARTIAL_HDR) != 0) {
                meta.parse_failure = DROP_TRUNCATED;
            }
        }
        if (hdr.ipv6_extensions[1].isValid()) {
            set_extension_bytes(16);
        } else if (hdr.ipv6_extensions[0].isValid()) {
            set_extension_bytes(8);
        }
    }
}

// Ingress: a packet leaves for egress.
control Departure(inout headers_t hdr, in metadata_t meta) {
    OuterDeparture() outer;

    action set_length4() {
        IN_HASH { hdr.bridge.length = hdr.ipv4.total_length; }
    }

    action set_length6() {
        IN_HASH { hdr.bridge.length = hdr.ipv6.payload_length; }
    }

    apply {
        hdr.bridge.setValid();
        hdr.bridge.kind = INTERNAL_BRIDGE;
        hdr.bridge.discipline = (bit<8>)meta.discipline;
        hdr.bridge.length = 0;
        hdr.bridge.other_bytes = 0;
        hdr.bridge.has_outer = 0;
        hdr.bridge.reserved = 0;
        hdr.bridge.ecn_threshold = meta.ecn_threshold;
        hdr.bridge.report_mask = meta.report_mask;
        if (hdr.ipv4.isValid()) {
            set_length4();
            hdr.bridge.other_bytes = 14 + BRIDGE_BYTES + FRAME_CHECK_BYTES;
        } else if (hdr.ipv6.isValid()) {
            set_length6();
            hdr.bridge.other_bytes = 54 + BRIDGE_BYTES + FRAME_CHECK_BYTES;
        }
        outer.apply(hdr);
        hdr.bridge.length_reason = DROP_IPV4_HEADER;
        if (hdr.ipv6.isValid()) {
            hdr.bridge.length_reason = DROP_IPV6_HEADER;
        }
        hdr.second_pass.setInvalid();
    }
}

control EgressArrival(in headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md) {
    action from_bridge() {
        meta.discipline = (Discipline)hdr.bridge.discipline;
        meta.ecn_threshold = hdr.bridge.ecn_threshold;
        meta.report_mask = hdr.bridge.report_mask;
    }

    action from_copy() {
        meta.origin_site = hdr.copy.origin_site;
        meta.connection_hash = hdr.copy.connection_hash;
    }

    apply {
        meta.egress_port = eg_intr_md.egress_port;
        if (hdr.bridge.isValid()) {
            from_bridge();
        } else if (hdr.copy.isValid()) {
            from_copy();
        }
    }
}

#endif
