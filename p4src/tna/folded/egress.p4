// SPDX-License-Identifier: Apache-2.0
// The last block that a packet passes: the egress of the edge, or of the gate (FOUR_PIPES). It compares the length of the frame,
// and marks packets if the queue of the port was long. In the gate, it also adds the outer headers of copies.
#ifndef FRONTAGE_TNA_FOLDED_EGRESS_P4
#define FRONTAGE_TNA_FOLDED_EGRESS_P4

parser EdgeEgressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    Checksum() ipv4_residue;

    state start {
        packet.extract(eg_intr_md);
#ifdef FOUR_PIPES
        bit<8> kind = packet.lookahead<bit<8>>();
        transition select(kind) {
            INTERNAL_BRIDGE: bridge;
            INTERNAL_COPY: copy;
        }
    }

    state copy {
        packet.extract(hdr.copy);
        packet.advance(8 * (GATE_BYTES + FOLD_BYTES)); // the packet as it arrived at the egress of the core
        transition ethernet;
    }

    state bridge {
#endif
        packet.extract(hdr.bridge);
        transition ethernet;
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        ipv4_residue.subtract({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.ttl, hdr.ipv4.protocol,
                                hdr.ipv4.checksum, hdr.ipv4.src, hdr.ipv4.dst });
        meta.ipv4_residue = ipv4_residue.get();
        transition accept;
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}

control EdgeEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
                   in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                   inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                   inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) egress_drops;

    FrameLength() frame_length;
    Marks() marks;
#ifdef FOUR_PIPES
    Copies() copies;

    action read_copy() {
        meta.origin_site = hdr.copy.origin_site;
        meta.connection_hash = hdr.copy.connection_hash;
    }

    Departures() departures;

    action read_discipline() {
        meta.egress_port = eg_intr_md.egress_port;
        meta.report_mask = hdr.bridge.report_mask;
    }

    // Another pipe has the registers of the port's scheduler.
    action report_departure() {
        eg_dprsr_md.mirror_type = MIRROR_WORKER;
        meta.mirror_kind = INTERNAL_QUEUE;
        meta.mirror_session = WORKER_SESSION;
    }
#else
    @name("scheduler") Thresholds() thresholds;
#endif

    apply {
        bit<16> missing;
        bit<1> has_threshold = 0;
        depth_t threshold = 0;
#ifdef FOUR_PIPES
        missing = 0;
        if (hdr.copy.isValid()) {
            read_copy();
            copies.apply(hdr, meta, eg_intr_md.egress_rid);
        } else
#endif
        {
            frame_length.apply(hdr, eg_intr_md.pkt_length, missing);
        }
#ifdef FOUR_PIPES
        read_discipline();
        if (hdr.bridge.isValid() && hdr.bridge.discipline != (bit<8>)Discipline.NONE) {
            has_threshold = 1;
            threshold = hdr.bridge.ecn_threshold;
        }
        if (hdr.bridge.isValid() && hdr.bridge.discipline == (bit<8>)Discipline.AIFO && missing == 0) {
            departures.apply(meta, eg_intr_md.deq_qdepth);
            if (meta.report_departure == 1) {
                report_departure();
            }
        }
#else
        thresholds.apply(eg_intr_md.egress_port, has_threshold, threshold);
#endif
        marks.apply(hdr, eg_intr_md.enq_qdepth, has_threshold, threshold);
#ifdef FOUR_PIPES
        if (meta.verdict != VERDICT_CONTINUE) { // of a copy
            egress_drops.count(meta.verdict);
            eg_dprsr_md.drop_ctl = 1;
        } else
#endif
        if (missing != 0) {
            egress_drops.count(hdr.bridge.length_reason);
            eg_dprsr_md.drop_ctl = 1;
        }
        hdr.bridge.setInvalid();
#ifdef FOUR_PIPES
        hdr.copy.setInvalid();
#endif
    }
}

control EdgeEgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                           in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Ipv4Checksum() ipv4_checksum;
#ifdef FOUR_PIPES
    OuterChecksum() outer_checksum;
    Mirror() worker_mirror;
#endif

    apply {
        ipv4_checksum.apply(hdr, meta);
#ifdef FOUR_PIPES
        outer_checksum.apply(hdr);
        if (eg_dprsr_md.mirror_type == MIRROR_WORKER) {
            worker_mirror.emit<queue_t>((MirrorId_t)meta.mirror_session,
                                        { meta.mirror_kind, 0, 0, meta.egress_port, 0, meta.depth_after });
        }
#endif
        packet.emit(hdr);
    }
}

#endif
