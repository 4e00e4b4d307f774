// SPDX-License-Identifier: Apache-2.0
// The traffic manager and the recirculation port pass on headers only: metadata become headers, and headers metadata.
#ifndef FRONTAGE_TNA_CROSSING_P4
#define FRONTAGE_TNA_CROSSING_P4

// Ingress: what the parser found, and what a former pass decided.
control Arrival(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md) {
    action from_port() {
        meta.ingress_port = ig_intr_md.ingress_port;
        meta.pipe = ig_intr_md.ingress_port[8:7];
        meta.now = ig_intr_md.ingress_mac_tstamp[45:30]; // ticks of 2^30 ns, 1.07 s
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
        meta.tree_right = hdr.worker.right;
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
            if (hdr.worker.pipe == ig_intr_md.ingress_port[8:7]) {
                worker_of_this_pipe();
            }
        } else if (hdr.packet_out.isValid()) {
            from_controller();
        }
    }
}

// Why the parser stopped early, and what it cannot count.
control ParseFailure(in headers_t hdr, inout metadata_t meta, in bit<16> parser_error) {
    action set_extension_units(bit<8> units) {
        meta.extension_units = units;
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
            set_extension_units(8);
        } else if (hdr.ipv6_extensions[6].isValid()) {
            set_extension_units(7);
        } else if (hdr.ipv6_extensions[5].isValid()) {
            set_extension_units(6);
        } else if (hdr.ipv6_extensions[4].isValid()) {
            set_extension_units(5);
        } else if (hdr.ipv6_extensions[3].isValid()) {
            set_extension_units(4);
        } else if (hdr.ipv6_extensions[2].isValid()) {
            set_extension_units(3);
        } else if (hdr.ipv6_extensions[1].isValid()) {
            set_extension_units(2);
        } else if (hdr.ipv6_extensions[0].isValid()) {
            set_extension_units(1);
        }
    }
}

// Ingress: a packet leaves for egress.
control Departure(inout headers_t hdr, in metadata_t meta) {
    apply {
        hdr.bridge.setValid();
        hdr.bridge.kind = INTERNAL_BRIDGE;
        hdr.bridge.direction = (bit<8>)meta.direction;
        hdr.bridge.discipline = (bit<8>)meta.discipline;
        hdr.bridge.has_outer = 0;
        if (hdr.outer_ipv4.isValid() || hdr.outer_ipv6.isValid()) {
            hdr.bridge.has_outer = 1;
        }
        hdr.bridge.at_cookie_address = meta.at_cookie_address;
        hdr.bridge.epoch = meta.quic_cookie.epoch;
        hdr.bridge.reserved = 0;
        hdr.bridge.sid = meta.sid;
        hdr.bridge.connection_hash = meta.connection_hash;
        hdr.bridge.cookie_prefix = meta.cookie_prefix;
        hdr.bridge.reserved2 = 0;
        hdr.bridge.ecn_threshold = meta.ecn_threshold;
        hdr.bridge.report_mask = meta.report_mask;
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
        meta.direction = (Direction)hdr.bridge.direction;
        meta.discipline = (Discipline)hdr.bridge.discipline;
        meta.at_cookie_address = hdr.bridge.at_cookie_address;
        meta.quic_cookie.epoch = hdr.bridge.epoch;
        meta.sid = hdr.bridge.sid;
        meta.connection_hash = hdr.bridge.connection_hash;
        meta.cookie_prefix = hdr.bridge.cookie_prefix;
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

// Egress: drops a packet whose IP header promises more bytes than the frame has, which ingress cannot know.
control FrameLength(in headers_t hdr, inout metadata_t meta, in bit<16> packet_length) {
    apply {
        bit<32> needed = 0;
        bit<8> reason = DROP_IPV4_HEADER;
        if (hdr.outer_ipv4.isValid()) {
            needed = (bit<32>)hdr.outer_ipv4.total_length + 14;
        } else if (hdr.outer_ipv6.isValid()) {
            needed = (bit<32>)hdr.outer_ipv6.payload_length + 54;
        } else if (hdr.ipv4.isValid()) {
            needed = (bit<32>)hdr.ipv4.total_length + 14;
        } else if (hdr.ipv6.isValid()) {
            needed = (bit<32>)hdr.ipv6.payload_length + 54;
        }
        if (hdr.ipv6.isValid()) {
            reason = DROP_IPV6_HEADER;
        }
        if (needed + sizeInBytes(hdr.bridge) + FRAME_CHECK_BYTES > (bit<32>)packet_length) {
            meta.verdict = reason;
        }
    }
}

#endif
