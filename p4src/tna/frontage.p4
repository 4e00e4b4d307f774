// SPDX-License-Identifier: Apache-2.0
// Frontage's data plane for Tofino (TNA and T2NA). The stages are those of v1model/frontage.p4. What differs is how a
// packet comes back and what crosses the traffic manager:
//
//     first pass of a tunnel's packet    resubmitted, with the outer headers' results instead of port metadata
//     handshake whose server is gone     resubmitted, too, to remove its entry
//     ingress to egress                  a header with what egress needs; it parses the packet only to rewrite it
//     copies of first flights, workers   mirrored, behind a header
#include "../include/drop.p4"
#include "../include/outcome.p4"
#include "arch.p4"
#include "../include/headers.p4"
#include "../include/metadata.p4"

#include "parser.p4"
#include "egress_parser.p4"
#include "counters.p4"
#include "stateful.p4"
#include "worker.p4"
#include "hash.p4"
#include "verdict.p4"
#include "checksum.p4"

#include "../control/ports.p4"
#include "../control/validation.p4"
#include "../control/neighbor.p4"
#include "../control/transport.p4"
#include "../control/vip.p4"
#include "../control/fragments.p4"
#include "../control/cookie.p4"
#include "../control/cookie6.p4"
#include "../control/unseal.p4"
#include "../control/retrieve.p4"
#include "../control/insight.p4"
#include "../control/maglev.p4"
#include "../control/reading.p4"
#include "../control/handshake.p4"
#include "../control/second_hop.p4"
#include "../control/fallback.p4"
#include "../control/recent.p4"
#include "../control/tree.p4"
#include "tree.p4"
#include "../control/assign.p4"
#include "../control/choice.p4"
#include "../control/server.p4"
#include "../control/cclb4.p4"
#include "../control/masking.p4"
#include "../control/learning.p4"
#include "../control/excess.p4"
#include "outer.p4"
#include "../control/tunnel.p4"
#include "../control/encapsulation.p4"
#include "../control/copies.p4"
#include "../control/region.p4"
#include "../control/demand.p4"
#include "../control/steering.p4"
#include "../control/groups.p4"
#include "../control/limits.p4"
#include "../control/forwarding.p4"
#include "../control/real_servers.p4"
#include "scheduling.p4"
#include "window.p4"
#include "../control/rank.p4"
#include "../control/aifo.p4"
#include "../control/sppifo.p4"
#include "../control/scheduler.p4"
#include "../control/ecn.p4"
#include "../control/checker.p4"
#include "crossing.p4"
#include "frame_length.p4"

control FrontageIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
                        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) drops;
    Counter<bit<64>, bit<8>>(OUTCOMES, CounterType_t.PACKETS_AND_BYTES) outcomes;
    Counter<bit<64>, bit<8>>(DISCIPLINES, CounterType_t.PACKETS) workers;

    Arrival() arrival;
    ParseFailure() parse_failure;
    Ports() ports;
    InnerExcess() inner_excess;
    Validation() validation;
    Neighbor() neighbor;
    NeighborMessage() neighbor_message;
    Learning() learning;
    Verdict() verdict;
    Tunnel() tunnel;
    Vip() vip;
    Fragments() fragments;
    Refusal() refusal;
    Checker() checker;
    RealServers() real_servers;
    Unseal() unseal;
    ConnectionHash() connection_hash;
    Region() region;
    Limits() limits;
    Demand() demand;
    Steering() steering;
    Reading() reading;
    Cclb4() cclb4;
    Encapsulation() encapsulation;
    Forwarding() forwarding;
    CookieAddress() cookie_address;
    Rank() rank;
    Scheduler() scheduler;
    Masking() masking;
    Copying() copying;
    BoundReport() bound_report;
    ChecksumFlags() checksum_flags;
    Departure() departure;
    sid_t sending_server;

    apply {
        arrival.apply(hdr, meta, ig_intr_md);

        if (meta.direction != Direction.CONTROLLER && meta.direction != Direction.WORKER
            && meta.verdict == VERDICT_CONTINUE) {
            // Check the packet. The checks do not wait for one another.
            ports.apply(meta);
            parse_failure.apply(hdr, meta, ig_prsr_md.parser_err);
            bit<16> excess; // of other packets, egress compares the length, because ingress does not know that of the frame
            inner_excess.apply(hdr, meta, excess);
            bit<1> bad_checksum = 0;
            if (hdr.ipv4.ihl == 5) {
                bad_checksum = meta.bad_ipv4_checksum;
            }
            validation.apply(hdr, meta, excess, bad_checksum);
            if (meta.second_pass == 0) {
                tunnel.apply(hdr, meta);
            }

            // Find the VIP and the direction.
            if (meta.direction == Direction.TRANSIT) {
                vip.apply(hdr, meta);
                if (meta.vip_verdict == VERDICT_CONTINUE) {
                    fragments.apply(hdr, meta);
                }
                refusal.apply(hdr, meta);
                checker.apply(hdr, meta);
            }
            if (meta.second_pass == 0) {
                real_servers.apply(hdr, meta);
                if (hdr.udp.isValid()) {
                    unseal.apply(hdr, meta);
                }
            }
            rank.apply(hdr, meta);
            if (meta.direction != Direction.TRANSIT || meta.from_tunnel == 1) {
                connection_hash.apply(hdr, meta);
            }

            // Read the cookie. A forged one counts only if this site serves the packet.
            if (meta.direction == Direction.UP || meta.direction == Direction.DOWN) {
                reading.apply(hdr, meta);
            }

            // Reply if it is a request to the switch itself. The reply overwrites headers that others match.
            if (meta.from_tunnel == 0) {
                neighbor_message.apply(hdr, meta);
                neighbor.apply(hdr, meta);
                learning.apply(meta);
            }
            verdict.apply(meta);
            meta.early_verdict = meta.verdict;

            // Choose the site.
            if (meta.verdict == VERDICT_CONTINUE && (meta.direction != Direction.TRANSIT || meta.from_tunnel == 1)
                && meta.second_pass == 0 && !IS_CHECK) {
                region.apply(hdr, meta);
                limits.apply(hdr, meta);
                if (meta.verdict == VERDICT_CONTINUE) {
                    demand.apply(hdr, meta);
                    steering.apply(hdr, meta);
                }
            }
        }

        sending_server = meta.sid; // the choice of a server overwrites it for packets of clients

        // Choose the server. An operation from the controller ends here, in the tournament tree.
        if (meta.verdict == VERDICT_CONTINUE && meta.remote == Remote.NONE
            && (meta.direction == Direction.UP || meta.direction == Direction.DOWN
                || meta.direction == Direction.CONTROLLER || meta.direction == Direction.WORKER)) {
            cclb4.apply(hdr, meta);
        }
        if (meta.verdict == VERDICT_CONTINUE && meta.remote == Remote.NONE) {
            meta.verdict = meta.cookie_verdict;
        }
        if (meta.direction == Direction.CONTROLLER) {
            meta.verdict = VERDICT_CONSUME;
        }

        // Choose the egress port and its queue. A worker packet names the port and ends in the scheduler's registers.
        if (meta.early_verdict == VERDICT_CONTINUE && meta.remote != Remote.NONE) {
            Remote remote = meta.remote;
            bit<16> remote_id = meta.remote_id;
            encapsulation.apply(hdr, meta, remote, remote_id); // after a server is chosen, no stage drops
        }
        if (meta.verdict == VERDICT_CONTINUE && meta.direction != Direction.WORKER) {
            forwarding.apply(hdr, meta);
        }
        cookie_address.apply(hdr, meta);
        if ((meta.verdict == VERDICT_CONTINUE || meta.verdict == VERDICT_REPLY)
            && (meta.direction != Direction.WORKER || meta.has_queue == 1)) {
            scheduler.apply(meta);
        }
        if (meta.direction == Direction.WORKER) {
            workers.count((bit<8>)meta.discipline);
            meta.verdict = VERDICT_CONSUME;
        }

        // Rewrite the server's packet for the client. The stages before read what this overwrites.
        masking.apply(hdr, meta, sending_server);

        // Carry out the verdict.
        copying.apply(meta, ig_dprsr_md.mirror_type);
        bound_report.apply(meta, ig_dprsr_md.mirror_type);
        if (meta.has_new_client == 1) {
            ig_dprsr_md.digest_type = DIGEST_NEW_CLIENT;
        } else if (meta.has_new_neighbor == 1 && meta.port_verdict == VERDICT_CONTINUE
            && meta.header_verdict == VERDICT_CONTINUE) {
            ig_dprsr_md.digest_type = DIGEST_NEW_NEIGHBOR;
        }
        if (meta.verdict == VERDICT_CONTINUE || meta.verdict == VERDICT_REPLY) {
            ig_tm_md.ucast_egress_port = meta.egress_port;
            ig_tm_md.qid = (QueueId_t)meta.priority;
            checksum_flags.apply(hdr, meta);
            departure.apply(hdr, meta);
            if (meta.direction != Direction.TRANSIT) {
                outcomes.count(meta.outcome);
            }
        } else if (meta.verdict == VERDICT_RESUBMIT) {
            ig_dprsr_md.resubmit_type = RESUBMIT;
            if (meta.releases_handshake == 1) {
                meta.second_pass_kind = SECOND_PASS_HANDSHAKE;
            }
        } else {
            if (meta.verdict != VERDICT_CONSUME) {
                drops.count(meta.verdict);
            }
            ig_dprsr_md.drop_ctl = 1;
        }
    }
}

control FrontageIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                                in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Ipv4Checksum() ipv4_checksum;
    TransportChecksum() transport_checksum;
    AdvertisementChecksum() advertisement_checksum;
    OuterChecksum() outer_checksum;
    @name("new_client_t") Digest<new_client_t>() new_client;
    @name("new_neighbor_t") Digest<new_neighbor_t>() new_neighbor;
    Mirror() worker_mirror;
    Mirror() copy_mirror;
    Resubmit() resubmit;

    apply {
        ipv4_checksum.apply(hdr, meta);
        transport_checksum.apply(hdr, meta);
        advertisement_checksum.apply(hdr, meta);
        outer_checksum.apply(hdr);
        if (ig_dprsr_md.digest_type == DIGEST_NEW_CLIENT) {
            new_client.pack({ meta.new_client_version, meta.new_client_prefix });
        }
        if (ig_dprsr_md.digest_type == DIGEST_NEW_NEIGHBOR) {
            new_neighbor.pack({ meta.sender.kind, meta.ingress_port, meta.sender.address, meta.sender.mac, meta.sender.source });
        }
        if (ig_dprsr_md.mirror_type == MIRROR_WORKER) {
            worker_mirror.emit<worker_t>((MirrorId_t)meta.mirror_session,
                                         { meta.mirror_kind, 0, meta.has_queue, 0, meta.ingress_port, 0, meta.egress_port, 0, 0,
                                           meta.bound_decrement, meta.tree.op, meta.tree.depth,
                                           meta.tree.slot, meta.tree.sid, meta.tree.score, 0, meta.worker_best });
        }
        if (ig_dprsr_md.mirror_type == MIRROR_COPY) {
            copy_mirror.emit<copy_t>((MirrorId_t)meta.mirror_session,
                                     { meta.mirror_kind, meta.origin_site, meta.connection_hash });
        }
        if (ig_dprsr_md.resubmit_type == RESUBMIT) {
            resubmit.emit<resubmitted_t>({ meta.second_pass_kind, meta.peer_site, meta.peer_source_set, meta.inner_length });
        }
        packet.emit(hdr);
    }
}

control FrontageEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
                       in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                       inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                       inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) egress_drops;

    EgressArrival() arrival;
    FrameLength() frame_length;
    Copies() copies;
    Ecn() ecn;
    Departures() departures;
    WorkerMirror() worker_mirror;
    TreeWorker() tree_worker;

    apply {
        arrival.apply(hdr, meta, eg_intr_md);
        if (hdr.bridge.isValid()) {
            bit<16> missing;
            frame_length.apply(hdr, eg_intr_md.pkt_length, missing);
            if (missing != 0) {
                meta.verdict = hdr.bridge.length_reason;
            } else if (meta.discipline != Discipline.NONE) {
                ecn.apply(hdr, meta, eg_intr_md.enq_qdepth);
                if (meta.discipline == Discipline.AIFO) {
                    departures.apply(meta, eg_intr_md.deq_qdepth);
                    if (meta.report_departure == 1) {
                        worker_mirror.apply(meta, eg_dprsr_md.mirror_type);
                        meta.has_queue = 1;
                    }
                }
            }
        } else if (hdr.copy.isValid()) {
            copies.apply(hdr, meta, eg_intr_md.egress_rid);
        } else {
            tree_worker.apply(hdr.worker);
        }
        if (meta.verdict != VERDICT_CONTINUE) {
            egress_drops.count(meta.verdict);
            eg_dprsr_md.drop_ctl = 1;
        }
        hdr.bridge.setInvalid();
        hdr.copy.setInvalid();
    }
}

control FrontageEgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                               in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Ipv4Checksum() ipv4_checksum;
    OuterChecksum() outer_checksum;
    Mirror() worker_mirror;

    apply {
        ipv4_checksum.apply(hdr, meta);
        outer_checksum.apply(hdr);
        if (eg_dprsr_md.mirror_type == MIRROR_WORKER) {
            worker_mirror.emit<worker_t>((MirrorId_t)meta.mirror_session,
                                         { meta.mirror_kind, 0, meta.has_queue, 0, meta.egress_port, 0, meta.egress_port, 0,
                                           meta.depth_after, 0, TREE_NONE, 0, 0, 0, 0, 0, 0 });
        }
        packet.emit(hdr);
    }
}

Pipeline(
    FrontageIngressParser(),
    FrontageIngress(),
    FrontageIngressDeparser(),
    FrontageEgressParser(),
    FrontageEgress(),
    FrontageEgressDeparser()
) pipe;

Switch(pipe) main;
