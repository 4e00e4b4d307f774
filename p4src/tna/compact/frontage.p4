// SPDX-License-Identifier: Apache-2.0
// Frontage's data plane for chips with few stages. It has tables, actions, registers and counters of ../frontage.p4, but
// another order of steps. The order in the text is the order of dependence: what depends only on the parsed packet is computed
// first, whether or not it is used. Ternary tables decide what elsewhere chains of conditions decide, because each condition on
// a result costs a stage. `@stage` keeps a table out of the stages that other tables need.
#include "../../include/drop.p4"
#include "../../include/outcome.p4"
#include "metadata.p4"
#include "../arch.p4"
#include "../../include/headers.p4"
#include "../../include/metadata.p4"

#include "../parser.p4"
#include "../egress_parser.p4"
#include "../counters.p4"
#include "../stateful.p4"
#include "../worker.p4"
#include "../checksum.p4"
#include "../frame_length.p4"
#include "../../control/tree.p4"
#include "../tree.p4"
#include "../../control/cookie.p4"
#include "../../control/maglev.p4"

#include "checks.p4"
#ifndef WITHOUT_CHECKER
#include "../../control/checker.p4"
#endif
#include "neighbor.p4"
#include "vip.p4"
#include "hash.p4"
#include "cookie.p4"
#include "insight.p4"
#ifndef ONE_PROTOCOL
#include "unseal.p4"
#include "handshake.p4"
#include "quic.p4"
#endif
#ifndef WITHOUT_FRAGMENTS
#include "../../control/fragments.p4"
#endif
#include "choice.p4"
#ifndef WITHOUT_NEXT_HOP_GROUPS
#include "groups.p4"
#endif
#include "../../control/server.p4"
#include "tree.p4"
#include "crossing.p4"

control FrontageIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
                        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) drops;
    Counter<bit<64>, bit<8>>(OUTCOMES, CounterType_t.PACKETS_AND_BYTES) outcomes;

    Vip() vip;
    Ports() ports;
    Lengths() lengths;
    Sources() sources;
    Segments() segments;
    ParseFailure() parse_failure;
    @name("vip") Addresses() addresses;
    @name("vip") Policy() policy;
    UpHash() up_hash;
#ifndef WITHOUT_NEXT_HOP_GROUPS
    AddressHash() address_hash;
#endif
    DownHash() down_hash;
    ConnectionIndex() connection_index;
    HeaderChecks() header_checks;
    Neighbor() neighbor;
    NeighborRest() neighbor_rest;
    Verdict() verdict;
    @name("reading.retrieve") Retrieve() retrieve;
    ReadLoads() read_loads;
    @name("reading.insight") Insight() insight;
    @name("reading.maglev") Maglev() maglev;
    @name("cclb4.tree.root") Root() root;
    @name("cclb4.assign") Assign() assign;
    @name("cclb4.assign") Candidate() candidate;
    @name("cclb4.fallback") Fallback() fallback;
    @name("cclb4.choice") Choice() choice;
    @name("cclb4.server") Server() server;
    @name("cclb4.tree.filter") Filter() filter;
    ControllerHeadroom() headroom;
    Masking() masking;
#ifndef ONE_PROTOCOL
    CookieForm() cookie_form;
    @name("unseal.open") Unseal() unseal;
    Datagrams() datagrams;
    @name("cclb4.handshake") Handshake() handshake;
    @name("quic_cookies") QuicRetrieval() quic_retrieval;
    @name("quic_cookies") QuicSource() quic_source;
    @name("masking") QuicMasking() quic_masking;
#endif
#ifndef WITHOUT_CHECKER
    Checker() checker;
#endif
#ifndef WITHOUT_FRAGMENTS
    Fragments() fragments;
#endif
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

#ifdef WITHOUT_NEXT_HOP_GROUPS
#define ROUTE_ACTIONS set_next_hop; no_route;
#else
#define ROUTE_ACTIONS set_next_hop; set_group; no_route;
    bit<16> group_id = 0; // 0: none

    @name("forwarding.set_group") action set_group(bit<16> group) {
        group_id = group;
    }

    // A group without members is not installed. The number of its next hop stays zero, which no next hop has.
    @name("forwarding.next_hop_group") NextHopGroup() next_hop_group;
#endif

    @name("forwarding.ipv4_lpm") table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { ROUTE_ACTIONS }
        const default_action = no_route();
        size = IPV4_ROUTES;
    }

    @name("forwarding.ipv6_lpm") table ipv6_lpm {
        key = { hdr.ipv6.dst: lpm @name("dst"); }
        actions = { ROUTE_ACTIONS }
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

    apply {
        // Read the packet before its addresses change.
#ifndef WITHOUT_CHECKER
        meta.ingress_port = ig_intr_md.ingress_port;
#endif
        up_hash.apply(hdr, meta);
        sources.apply(hdr, meta);
        segments.apply(hdr, meta);

        // Find the VIP and the direction. A server's packet gets the VIP's source address.
        if (hdr.worker.isValid()) {
            from_worker();
        } else if (hdr.packet_out.isValid()) {
            from_controller();
        } else {
            vip.apply(hdr, meta);
        }
        addresses.apply(hdr, meta);
        headroom.apply(meta);
        policy.apply(meta);
#ifndef WITHOUT_CHECKER
        checker.apply(hdr, meta);
#endif
#ifndef ONE_PROTOCOL
        cookie_form.apply(hdr, meta);
        unseal.apply(meta);
#endif

        // The server that the cookie names, and that of the hash.
        retrieve.apply(hdr, meta);
        maglev.apply(meta);

        // Check the packet, and reply if it is a request to the switch itself.
        ports.apply(meta, ig_intr_md.ingress_port);
        parse_failure.apply(meta, ig_prsr_md.parser_err);
        lengths.apply(hdr, meta);
        header_checks.apply(hdr, meta);
        neighbor.apply(hdr, meta, ig_intr_md.ingress_port, ig_tm_md.ucast_egress_port);
#ifndef ONE_PROTOCOL
        datagrams.apply(hdr, meta);
#endif
        verdict.apply(hdr, meta);

        // Steps that others do not wait for: here, the hash units have room.
        down_hash.apply(hdr, meta);
        connection_index.apply(hdr, meta);
        read_clock();
        neighbor_rest.apply(hdr, meta);
        departure.apply(hdr);
#ifndef WITHOUT_FRAGMENTS
        if (meta.verdict == VERDICT_CONTINUE) {
            fragments.apply(hdr, meta);
        }
#endif

        // Read the loads of a server's packet, and mask its cookie.
        read_loads.apply(hdr, meta);
#ifdef ONE_PROTOCOL
        insight.apply(hdr, meta);
        masking.apply(hdr, meta);
        filter.apply(meta);
#endif

        // Choose the server of a client's packet, and rewrite it.
        root.apply(hdr, meta);
#ifndef ONE_PROTOCOL
        handshake.apply(hdr, meta);
        quic_retrieval.apply(hdr, meta);
#endif
        assign.apply(meta);
        candidate.apply(hdr, meta);
        fallback.apply(hdr, meta);
#ifndef WITHOUT_FRAGMENTS
        if (meta.vip_verdict != VERDICT_CONTINUE) {
            meta.verdict = DROP_SERVER_FRAGMENT;
        }
#endif
#ifndef ONE_PROTOCOL
        masking.apply(hdr, meta);
        quic_source.apply(hdr, meta);
        quic_masking.apply(hdr, meta);
#endif
#ifdef ONE_PROTOCOL
        choice.apply(hdr, meta);
#else
        if (meta.direction == Direction.UP) {
            choice.apply(hdr, meta);
        } else {
            insight.apply(hdr, meta);
            filter.apply(meta);
        }
#endif
        if (meta.direction == Direction.UP && meta.verdict == VERDICT_CONTINUE) {
            server.apply(hdr, meta);
        }

        // Change the tree.
        if (meta.direction != Direction.WORKER && meta.tree.op != TREE_NONE && meta.is_repeated == 0) {
            worker_mirror.apply(meta, ig_dprsr_md.mirror_type);
        }
        read_best();
#ifndef WITHOUT_NEXT_HOP_GROUPS
        address_hash.apply(hdr, meta);
#endif

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
            }
#ifndef ONE_PROTOCOL
            if (meta.direction == Direction.UP && meta.at_cookie_address == 1) {
                hdr.ipv6.dst[63:0] = meta.cookie_word; // the server's address at which the client knows it
            }
#endif
#ifndef WITHOUT_NEXT_HOP_GROUPS
            if (group_id != 0) {
                next_hop_group.apply(meta, group_id, next_hop_id);
            }
#endif
            if (meta.verdict == VERDICT_CONTINUE) {
                if (next_hop.apply().miss) {
                    drops.count(DROP_NO_NEXT_HOP);
                } else if (meta.direction != Direction.TRANSIT) {
                    outcomes.count(meta.outcome);
                }
#ifndef ONE_PROTOCOL
            } else if (meta.verdict == DROP_SERVER_GONE && meta.outcome == OUTCOME_RETRIEVED_HANDSHAKE) {
                ig_dprsr_md.resubmit_type = RESUBMIT;
#endif
            } else if (meta.verdict != VERDICT_REPLY) {
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
#ifndef ONE_PROTOCOL
    Resubmit() resubmit;
#endif

    apply {
        ipv4_checksum.apply(hdr, meta);
        transport_checksum.apply(hdr, meta);
        advertisement_checksum.apply(hdr, meta);
        if (ig_dprsr_md.mirror_type == MIRROR_WORKER) {
            worker_mirror.emit<worker_t>((MirrorId_t)meta.mirror_session,
                                         { meta.mirror_kind, meta.tree.op, meta.tree_depth, meta.tree.slot, meta.tree.sid,
                                           meta.tree.score, 0, meta.worker_best });
        }
#ifndef ONE_PROTOCOL
        if (ig_dprsr_md.resubmit_type == RESUBMIT) {
            resubmit.emit<resubmitted_t>({ meta.second_pass_kind, 0, 0, 0 });
        }
#endif
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
