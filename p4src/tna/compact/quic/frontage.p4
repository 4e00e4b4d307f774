// SPDX-License-Identifier: Apache-2.0
// Frontage's data plane for QUIC only, for chips with few stages. It has the tables, actions, registers and counters of
// ../../frontage.p4, in the order of ../frontage.p4: what depends only on the parsed packet is computed first. The chain of
// a client's packet takes all stages of Tofino 1:
//
//     VIP; four rounds of the cipher; the named server; its membership and the handshake; the choice; the handshake's server;
//     rewriting; route; next hop
#include "../../../include/drop.p4"
#include "../../../include/outcome.p4"
#include "metadata.p4"
#include "../../arch.p4"
#include "../../../include/headers.p4"
#include "../../../include/metadata.p4"

#include "../../parser.p4"
#include "../../egress_parser.p4"
#include "../../counters.p4"
#include "../../stateful.p4"
#include "../../worker.p4"
#include "../../checksum.p4"
#include "../../frame_length.p4"
#include "../../../control/tree.p4"
#include "../../tree.p4"
#include "../../../control/maglev.p4"

#include "../checks.p4"
#include "../neighbor.p4"
#include "../hash.p4"
#include "../tree.p4"
#include "../crossing.p4"
#include "../../../control/server.p4"
#include "checks.p4"
#include "../vip.p4"
#include "vip.p4"
#include "hash.p4"
#include "unseal.p4"
#include "insight.p4"
#include "choice.p4"

// Resubmitted instead of port metadata (second_pass_t).
struct second_pass_kind_t {
    bit<8> kind;
}

control FrontageIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
                        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) drops;
    Counter<bit<64>, bit<8>>(OUTCOMES, CounterType_t.PACKETS_AND_BYTES) outcomes;

    QuicVip() vip;
    Ports() ports;
    Lengths() lengths;
    Datagrams() datagrams;
    Sources() sources;
    Ipv4Residue() ipv4_residue;
    ParseFailure() parse_failure;
    ConnectionIdForm() connection_id_form;
    @name("vip") QuicAddresses() addresses;
    @name("vip") Policy() policy;
    OwnAddress() own_address;
    ClientHash() client_hash;
    DownHash() down_hash;
    HeaderChecks() header_checks;
    Neighbor() neighbor;
    NeighborRest() neighbor_rest;
    DatagramVerdict() verdict;
    @name("unseal.open") Unseal() unseal;
    @name("cclb4.tree.root") Candidate() candidate;
    Kind() kind;
    @name("reading.insight") Scores() scores;
    @name("reading.insight") Insight() insight;
    @name("reading.maglev") Maglev() maglev;
    @name("cclb4.handshake") Handshake() handshake;
    @name("cclb4.choice") Choice() choice;
    @name("cclb4.choice") HandshakeSids() handshake_sids;
    @name("cclb4.server") Server() server;
    CookieAddress() cookie_address;
    ReportScore() report_score;
    @name("cclb4.tree.filter") QuicFilter() filter;
    ControllerHeadroom() headroom;
    Masking() masking;
    Departure() departure;
    WorkerMirror() worker_mirror;
    bit<16> next_hop_id = 0;

    action from_worker() {
        meta.direction = Direction.WORKER;
        meta.tree.op = hdr.worker.op;
        meta.tree.slot = hdr.worker.slot;
        meta.tree.score = hdr.worker.score;
        meta.tree_base = hdr.worker.root;
    }

    action from_controller() {
        meta.direction = Direction.CONTROLLER;
        meta.tree.op = hdr.packet_out.op;
        meta.tree.slot = hdr.packet_out.slot;
        meta.tree.sid = hdr.packet_out.sid;
        meta.tree.score = hdr.packet_out.score;
        meta.tree_depth = hdr.packet_out.depth;
    }

    // The value that a leaf sends up, without its headroom (control/tree.p4).
    action read_best() {
        IN_HASH { meta.worker_best = 16w0 ++ meta.connection_hash[19:16] ++ meta.tree.sid[11:0]; }
    }

    action read_clock() {
        IN_HASH { meta.now = 13w0 ++ 1w1 ++ ig_intr_md.ingress_mac_tstamp[47:30]; }
    }

    // Forwarding, as in control/forwarding.p4. It is in this control because counters depend on whether the last table hits. A
    // field for the result would cost a stage.
    @name("forwarding.set_next_hop") action set_next_hop(bit<16> next_hop) {
        next_hop_id = next_hop;
    }

    @name("forwarding.no_route") action no_route() {
        meta.verdict = DROP_NO_ROUTE;
    }

    @name("forwarding.ipv4_lpm") table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { set_next_hop; no_route; }
        const default_action = no_route();
        size = IPV4_ROUTES;
    }

    @name("forwarding.ipv6_lpm") table ipv6_lpm {
        key = { hdr.ipv6.dst: lpm @name("dst"); }
        actions = { set_next_hop; no_route; }
        const default_action = no_route();
        size = IPV6_ROUTES;
    }

    @name("forwarding.forward") action forward(port_t port, mac_t src_mac, mac_t dst_mac) {
        ig_tm_md.ucast_egress_port = port;
        hdr.ethernet.src = src_mac;
        hdr.ethernet.dst = dst_mac;
    }

    @name("forwarding.no_next_hop") action no_next_hop() {
        ig_dprsr_md.drop_ctl = 1;
    }

    @name("forwarding.next_hop") table next_hop {
        key = { next_hop_id: exact @name("next_hop"); }
        actions = { forward; no_next_hop; }
        const default_action = no_next_hop();
        size = NEXT_HOPS;
    }

    // The server of the handshake is gone: the second pass removes the entry, and drops the packet (control/cclb4.p4).
    action release_handshake() {
        meta.verdict = VERDICT_RESUBMIT;
        meta.second_pass_kind = SECOND_PASS_HANDSHAKE;
        ig_dprsr_md.resubmit_type = RESUBMIT;
    }

    apply {
        // Read the packet before its addresses change.
        client_hash.apply(hdr, meta);
        sources.apply(hdr, meta);
        ipv4_residue.apply(meta);
        report_score.apply(hdr, meta);
        connection_id_form.apply(hdr, meta);

        // Find the VIP and the direction. A server's packet gets the VIP's source address.
        if (hdr.worker.isValid()) {
            from_worker();
        } else if (hdr.packet_out.isValid()) {
            from_controller();
        } else {
            vip.apply(hdr, meta);
        }
        unseal.apply(meta);
        addresses.apply(hdr, meta);
        headroom.apply(meta);
        policy.apply(meta);
        own_address.apply(meta);
        maglev.apply(meta);

        // Check the packet, and reply if it is a request to the switch itself.
        ports.apply(meta, ig_intr_md.ingress_port);
        parse_failure.apply(meta, ig_prsr_md.parser_err);
        lengths.apply(hdr, meta);
        datagrams.apply(hdr, meta);
        header_checks.apply(hdr, meta);
        neighbor.apply(hdr, meta, ig_intr_md.ingress_port, ig_tm_md.ucast_egress_port);
        verdict.apply(hdr, meta);

        // Steps that others do not wait for.
        down_hash.apply(hdr, meta);
        read_clock();
        neighbor_rest.apply(hdr, meta);
        departure.apply(hdr);
        if ((meta.direction == Direction.UP || meta.direction == Direction.DOWN) && hdr.udp.checksum != 0) {
            meta.update_udp = 1;
        }

        // Read the cookie, the loads of a server's packet, and the source that its client expects.
        candidate.apply(hdr, meta);
        kind.apply(meta);
        scores.apply(meta);
        masking.apply(hdr, meta);

        // Choose the server of a client's packet, and rewrite it. A server's packet changes the tree.
        handshake.apply(hdr, meta);
        choice.apply(hdr, meta);
        insight.apply(meta);
        handshake_sids.apply(meta);
        filter.apply(meta);
        if (meta.direction == Direction.UP && meta.verdict == VERDICT_CONTINUE) {
            server.apply(hdr, meta);
        }

        // Change the tree.
        if (meta.direction != Direction.WORKER && meta.tree.op != TREE_NONE && meta.is_repeated == 0) {
            worker_mirror.apply(meta, ig_dprsr_md.mirror_type);
        }
        read_best();

        // Choose the port, and carry out the verdict.
        if (meta.direction == Direction.CONTROLLER || meta.direction == Direction.WORKER) {
            ig_dprsr_md.drop_ctl = 1;
        } else {
            if (meta.verdict == VERDICT_CONTINUE) {
                if (hdr.ipv4.isValid()) {
                    if (hdr.ipv4.ttl <= 1) {
                        meta.verdict = DROP_TTL;
                    } else {
                        ipv4_lpm.apply();
                        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                    }
                } else {
                    if (hdr.ipv6.hop_limit <= 1) {
                        meta.verdict = DROP_TTL;
                    } else {
                        ipv6_lpm.apply();
                        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                    }
                }
            } else if (meta.verdict == DROP_SERVER_GONE && meta.outcome == OUTCOME_RETRIEVED_HANDSHAKE) {
                release_handshake();
            }
            cookie_address.apply(hdr, meta);
            if (meta.verdict == VERDICT_CONTINUE) {
                if (next_hop.apply().miss) {
                    drops.count(DROP_NO_NEXT_HOP);
                } else if (meta.direction != Direction.TRANSIT) {
                    outcomes.count(meta.outcome);
                }
            } else if (meta.verdict != VERDICT_REPLY && meta.verdict != VERDICT_RESUBMIT) {
                drops.count(meta.verdict);
                ig_dprsr_md.drop_ctl = 1;
            }
        }
    }
}

control FrontageIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                                in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Ipv4Checksum() ipv4_checksum;
    TransportChecksum() transport_checksum;
    AdvertisementChecksum() advertisement_checksum;
    Mirror() worker_mirror;
    Resubmit() resubmit;

    apply {
        ipv4_checksum.apply(hdr, meta);
        transport_checksum.apply(hdr, meta);
        advertisement_checksum.apply(hdr, meta);
        if (ig_dprsr_md.mirror_type == MIRROR_WORKER) {
            worker_mirror.emit<worker_t>((MirrorId_t)meta.mirror_session,
                                         { meta.mirror_kind, meta.tree.op, meta.tree_depth, meta.tree.slot, meta.tree.sid,
                                           meta.tree.score, 0, meta.worker_best });
        }
        if (ig_dprsr_md.resubmit_type == RESUBMIT) {
            resubmit.emit<second_pass_kind_t>({ meta.second_pass_kind });
        }
        packet.emit(hdr);
    }
}

control FrontageEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
                       in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                       inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                       inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) egress_drops;

    FrameLength() frame_length;
    TreeWorker() tree_worker;

    apply {
        if (hdr.bridge.isValid()) {
            bit<16> missing;
            frame_length.apply(hdr, eg_intr_md.pkt_length, missing);
            if (missing != 0) {
                egress_drops.count(hdr.bridge.length_reason);
                eg_dprsr_md.drop_ctl = 1;
            }
        } else {
            tree_worker.apply(hdr.worker);
        }
        hdr.bridge.setInvalid();
    }
}

control FrontageEgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                               in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
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
