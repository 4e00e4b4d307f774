// SPDX-License-Identifier: Apache-2.0
// The third pipe of the folded pipeline: the queue of the port by which a packet leaves, and the registers of the schedulers
// (docs/tofino.md, "The fold"). The core has chosen the port, and port 256 + p of this pipe belongs to port p alone.
#ifndef FRONTAGE_TNA_FOLDED_SCHEDULING_P4
#define FRONTAGE_TNA_FOLDED_SCHEDULING_P4

// Packets of the core, and reports that change the registers of a port (queue_t)
parser SchedulingIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        transition select(ig_intr_md.ingress_port) {
            CPU_PORT: from_controller;
            default: from_switch;
        }
    }

    state from_controller {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state from_switch {
        bit<8> kind = packet.lookahead<bit<8>>();
        transition select(kind) {
            INTERNAL_SCHEDULED: scheduled;
            INTERNAL_QUEUE: queue;
        }
    }

    state scheduled {
        packet.extract(hdr.scheduled);
        packet.extract(hdr.bridge);
        transition accept;
    }

    state queue {
        packet.extract(hdr.queue);
        transition accept;
    }
}

// The core: the rank crosses to the schedulers.
control SchedulingDeparture(inout headers_t hdr, in metadata_t meta) {
    action depart() {
        hdr.scheduled.setValid();
        hdr.scheduled.kind = INTERNAL_SCHEDULED;
        hdr.scheduled.rank = meta.cookie_rank;
        hdr.scheduled.reserved = 0;
        hdr.scheduled.has_rank = meta.has_cookie_rank;
    }

    apply {
        depart();
    }
}

// A frame of the controller leaves as it is. An operation on a tree becomes a worker.
control FromController(inout headers_t hdr, inout metadata_t meta, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                       inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    ControllerHeadroom() headroom;

    action send() {
        ig_tm_md.ucast_egress_port = (port_t)hdr.packet_out.slot;
        hdr.bridge.setValid();
        hdr.bridge.kind = INTERNAL_BRIDGE;
        hdr.bridge.discipline = (bit<8>)Discipline.NONE;
        hdr.bridge.length_reason = DROP_NONE;
        hdr.bridge.length = 0;
        hdr.bridge.other_bytes = 0;
        hdr.packet_out.setInvalid();
    }

    action operate() {
        meta.tree.op = hdr.packet_out.op;
        meta.tree.slot = hdr.packet_out.slot;
        meta.tree.sid = hdr.packet_out.sid;
        meta.tree.score = hdr.packet_out.score;
        meta.tree_depth = hdr.packet_out.depth;
        meta.mirror_kind = INTERNAL_WORKER;
        meta.mirror_session = WORKER_SESSION;
        ig_dprsr_md.mirror_type = MIRROR_OPERATION;
        ig_dprsr_md.drop_ctl = 1;
    }

    // The value that a leaf sends up, without its headroom (control/tree.p4).
    action read_best() {
        IN_HASH { meta.worker_best = 20w0 ++ meta.tree.sid[11:0]; }
    }

    apply {
        meta.direction = Direction.CONTROLLER;
        if (hdr.packet_out.op == PACKET_OUT_SEND) {
            send();
        } else {
            operate();
            headroom.apply(meta);
            read_best();
        }
    }
}

control SchedulingIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
                          in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                          inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                          inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) scheduling_drops;
    Counter<bit<64>, bit<8>>(DISCIPLINES, CounterType_t.PACKETS) workers;

    Scheduler() scheduler;
    FromController() from_controller;

    action arrive() {
        meta.direction = Direction.TRANSIT;
        meta.egress_port = ig_intr_md.ingress_port & PORT_MASK;
        meta.cookie_rank = hdr.scheduled.rank;
        meta.has_cookie_rank = hdr.scheduled.has_rank;
    }

    action report() {
        meta.direction = Direction.WORKER;
        meta.egress_port = hdr.queue.egress_port;
        meta.depth_after = hdr.queue.depth_after;
        meta.bound_decrement = hdr.queue.bound_decrement;
    }

    action leave() {
        ig_tm_md.ucast_egress_port = meta.egress_port;
        ig_tm_md.qid = (QueueId_t)meta.priority;
        hdr.bridge.discipline = (bit<8>)meta.discipline;
        hdr.bridge.ecn_threshold = meta.ecn_threshold;
        hdr.bridge.report_mask = meta.report_mask;
        hdr.scheduled.setInvalid();
    }

    // SP-PIFO: the other bounds have to decrease.
    action report_bounds() {
        ig_dprsr_md.mirror_type = MIRROR_WORKER;
        meta.mirror_kind = INTERNAL_QUEUE;
        meta.mirror_session = WORKER_SESSION;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            from_controller.apply(hdr, meta, ig_dprsr_md, ig_tm_md);
        } else
        if (hdr.queue.isValid()) {
            report();
        } else {
            arrive();
        }
        scheduler.apply(meta);
        if (meta.direction == Direction.CONTROLLER) {
            // sent, or mirrored as a worker
        } else if (meta.direction == Direction.WORKER) {
            workers.count((bit<8>)meta.discipline);
            ig_dprsr_md.drop_ctl = 1;
        } else {
            leave();
            if (meta.bound_decrement != 0) {
                report_bounds();
            }
            if (meta.verdict != VERDICT_CONTINUE) {
                scheduling_drops.count(meta.verdict, SCHEDULED_BYTES);
                ig_dprsr_md.drop_ctl = 1;
            }
        }
    }
}

control SchedulingIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                                  in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Mirror() worker_mirror;

    apply {
        if (ig_dprsr_md.mirror_type == MIRROR_WORKER) {
            worker_mirror.emit<queue_t>((MirrorId_t)meta.mirror_session,
                                        { meta.mirror_kind, meta.bound_decrement, 0, meta.egress_port, 0, 0 });
        }
        if (ig_dprsr_md.mirror_type == MIRROR_OPERATION) {
            worker_mirror.emit<worker_t>((MirrorId_t)meta.mirror_session,
                                         { meta.mirror_kind, meta.tree.op, meta.tree_depth, meta.tree.slot, meta.tree.sid,
                                           meta.tree.score, 0, meta.worker_best });
        }
        packet.emit(hdr);
    }
}


#endif
