// SPDX-License-Identifier: Apache-2.0
// The traffic manager and the recirculation port pass on headers only: metadata become headers, and headers metadata.
#ifndef FRONTAGE_TNA_CROSSING_P4
#define FRONTAGE_TNA_CROSSING_P4

// Ingress: what the parser found, and what a former pass decided.
control Arrival(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md) {
    action from_port() {
        meta.ingress_port = ig_intr_md.ingress_port;
        meta.origin_port = ig_intr_md.ingress_port;
        meta.now = 13w0 ++ 1w1 ++ ig_intr_md.ingress_mac_tstamp[47:30];
    }

    action tunnel_pass() {
        meta.from_tunnel = 1;
        meta.peer_site = hdr.tunnel_pass.peer_site;
        meta.peer_source_set = hdr.tunnel_pass.peer_source_set;
        meta.inner_length = hdr.tunnel_pass.inner_length;
    }

    action second_pass() {
        meta.second_pass = 1;
        meta.from_tunnel = hdr.second_pass.from_tunnel;
        meta.ingress_port = hdr.second_pass.ingress_port;
        meta.origin_site = hdr.second_pass.origin_site;
        meta.resubmit_tree_op = hdr.second_pass.tree_op;
        meta.resubmit_connection_op = hdr.second_pass.connection_op;
        meta.resubmit_slot = hdr.second_pass.slot;
        meta.resubmit_sid = hdr.second_pass.sid;
        meta.resubmit_outcome = hdr.second_pass.outcome;
        hdr.second_pass.setInvalid();
    }

    action worker() {
        meta.direction = Direction.WORKER;
        meta.has_queue = hdr.worker.has_queue;
        meta.egress_port = hdr.worker.egress_port;
        meta.depth_after = hdr.worker.depth_after;
        meta.tree.op = hdr.worker.tree_op;
        meta.tree.slot = hdr.worker.slot;
        meta.tree.score = hdr.worker.score;
        meta.tree.best = hdr.worker.best;
        meta.tree_depth = hdr.worker.tree_depth;
        meta.tree_base = hdr.worker.root;
    }

    // The bounds of priorities are those of the packets of one pipe.
    action worker_of_this_pipe() {
        meta.bound_decrement = hdr.worker.bound_decrement;
    }

    action from_controller() {
        meta.direction = Direction.CONTROLLER;
    }

    apply {
        from_port();
        if (hdr.tunnel_pass.isValid()) {
            tunnel_pass();
            if (hdr.vxlan.isValid()) {
                hdr.ethernet.ether_type = hdr.inner_ethernet.ether_type;
            } else {
                hdr.ethernet.ether_type = hdr.gre.protocol;
            }
        } else if (hdr.second_pass.isValid()) {
            second_pass();
        } else if (hdr.worker.isValid()) {
            worker();
            if (hdr.worker.tree_op != TREE_NONE) {
                meta.writes_root = 1;
            }
            if (hdr.worker.origin_port[8:7] == ig_intr_md.ingress_port[8:7]) {
                worker_of_this_pipe();
            }
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
            } else if (parser_error != PARSER_ERROR_OK) {
                meta.parse_failure = DROP_VIP_EXTENSION; // more than the parser follows
            }
        }
        if (hdr.ipv6_extensions[7].isValid()) {
            set_extension_bytes(64);
        } else if (hdr.ipv6_extensions[6].isValid()) {
            set_extension_bytes(56);
        } else if (hdr.ipv6_extensions[5].isValid()) {
            set_extension_bytes(48);
        } else if (hdr.ipv6_extensions[4].isValid()) {
            set_extension_bytes(40);
        } else if (hdr.ipv6_extensions[3].isValid()) {
            set_extension_bytes(32);
        } else if (hdr.ipv6_extensions[2].isValid()) {
            set_extension_bytes(24);
        } else if (hdr.ipv6_extensions[1].isValid()) {
            set_extension_bytes(16);
        } else if (hdr.ipv6_extensions[0].isValid()) {
            set_extension_bytes(8);
        }
    }
}

// Ingress: a packet leaves for egress.
control Departure(inout headers_t hdr, in metadata_t meta) {
    // The frame check sequence and this header count as well.
    action set_length(bit<16> length, bit<16> other_bytes) {
        hdr.bridge.length = length |+| (other_bytes + BRIDGE_BYTES + FRAME_CHECK_BYTES);
    }

    apply {
        hdr.bridge.setValid();
        hdr.bridge.kind = INTERNAL_BRIDGE;
        hdr.bridge.discipline = (bit<8>)meta.discipline;
        hdr.bridge.has_outer = 0;
        hdr.bridge.reserved = 0;
        hdr.bridge.ecn_threshold = meta.ecn_threshold;
        hdr.bridge.report_mask = meta.report_mask;
        if (hdr.outer_ipv4.isValid()) {
            hdr.bridge.has_outer = 1;
            set_length(hdr.outer_ipv4.total_length, 14);
        } else if (hdr.outer_ipv6.isValid()) {
            hdr.bridge.has_outer = 1;
            set_length(hdr.outer_ipv6.payload_length, 54);
        } else if (hdr.ipv4.isValid()) {
            set_length(hdr.ipv4.total_length, 14);
        } else if (hdr.ipv6.isValid()) {
            set_length(hdr.ipv6.payload_length, 54);
        } else {
            set_length(0, 0);
        }
        hdr.bridge.length_reason = DROP_IPV4_HEADER;
        if (hdr.ipv6.isValid()) {
            hdr.bridge.length_reason = DROP_IPV6_HEADER;
        }
        hdr.tunnel_pass.setInvalid();
    }
}

// Ingress: a packet leaves for its second pass, as it came but without the outer headers of its tunnel.
control SecondPass(inout headers_t hdr, in metadata_t meta) {
    apply {
        hdr.second_pass.setValid();
        hdr.second_pass.kind = INTERNAL_SECOND_PASS;
        hdr.second_pass.from_tunnel = meta.from_tunnel;
        hdr.second_pass.reserved = 0;
        hdr.second_pass.ingress_port = meta.ingress_port;
        hdr.second_pass.origin_site = meta.origin_site;
        hdr.second_pass.tree_op = meta.resubmit_tree_op;
        hdr.second_pass.connection_op = meta.resubmit_connection_op;
        hdr.second_pass.slot = meta.resubmit_slot;
        hdr.second_pass.sid = meta.resubmit_sid;
        hdr.second_pass.outcome = meta.resubmit_outcome;
        hdr.tunnel_pass.setInvalid();
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

// Egress: drops a packet whose IP header promises more bytes than the frame has, which ingress cannot know. It subtracts
// the lengths, because the condition of a branch cannot compare two fields.
control FrameLength(in headers_t hdr, inout metadata_t meta, in bit<16> packet_length) {
    apply {
        bit<16> missing = hdr.bridge.length |-| packet_length;
        if (missing != 0) {
            meta.verdict = hdr.bridge.length_reason;
        }
    }
}

#endif
