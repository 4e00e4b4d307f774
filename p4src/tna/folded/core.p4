// SPDX-License-Identifier: Apache-2.0
// The core of the folded pipeline: the choice of the server and the route. It has the order of ../compact/frontage.p4. Its egress
// has the tournament trees.
#ifndef FRONTAGE_TNA_FOLDED_CORE_P4
#define FRONTAGE_TNA_FOLDED_CORE_P4

FOLD_ALIASES("core")
control CoreIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
                    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) drops;
    Counter<bit<64>, bit<8>>(OUTCOMES, CounterType_t.PACKETS_AND_BYTES) outcomes;

    Arrival() arrival;
    Segments() segments;
    @name("vip") Policy() policy;
#ifndef FOUR_PIPES
    @name("reading.retrieve") Retrieve() retrieve;
    ControllerHeadroom() headroom;
#endif
    ReadLoads() read_loads;
    @name("reading.insight") Insight() insight;
    @name("reading.maglev") Maglev() maglev;
    @name("cclb4.second_hop") SecondHop() second_hop;
    @name("cclb4.second_hop") SecondHopMark() second_hop_mark;
    @name("cclb4.tree.root") Root() root;
    @name("cclb4.assign") Assign() assign;
    @name("cclb4.assign") Candidate() candidate;
    @name("cclb4.fallback") Fallback() fallback;
    @name("cclb4.choice") Choice() choice;
    @name("cclb4.server") Server() server;
    @name("cclb4.tree.filter") Filter() filter;
    Masking() masking;
    @name("cclb4.handshake") Handshake() handshake;
    @name("cclb4.recent") Recent() recent;
    @name("cclb4.recent.candidate") RecentCandidate() recent_candidate;
    Departure() departure;
#ifdef FOUR_PIPES
    SchedulingDeparture() scheduling_departure;
#endif
    WorkerMirror() worker_mirror;
    bit<16> next_hop_id = 0;

    action from_worker() {
        meta.direction = Direction.WORKER;
        meta.tree.op = hdr.worker.op;
        meta.tree.slot = hdr.worker.slot;
        meta.tree.score = hdr.worker.score;
        meta.tree_base = hdr.worker.root;
    }

#ifndef FOUR_PIPES
    action from_controller() {
        meta.direction = Direction.CONTROLLER;
        meta.tree.op = hdr.packet_out.op;
        meta.tree.slot = hdr.packet_out.slot;
        meta.tree.sid = hdr.packet_out.sid;
        meta.tree.score = hdr.packet_out.score;
        meta.tree_depth = hdr.packet_out.depth;
    }

    // A frame of the controller leaves as it is.
    action send() {
        meta.direction = Direction.CONTROLLER;
        meta.verdict = VERDICT_REPLY;
        ig_tm_md.ucast_egress_port = TO_PORT((port_t)hdr.packet_out.slot);
        hdr.packet_out.setInvalid();
    }
#endif

    action read_quic_loads() {
        meta.n_af = hdr.fold.n_af;
        meta.n_ff = hdr.fold.n_ff;
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

#define ROUTE_ACTIONS set_next_hop; set_group; no_route;
    bit<16> group_id = 0; // 0: none

    @name("forwarding.set_group") action set_group(bit<16> group) {
        group_id = group;
    }

#ifdef FOUR_PIPES
#define LOOK_UP(table) if (hdr.remote.isValid()) { remote_route.apply(); } else { table.apply(); }
#else
#define LOOK_UP(table) table.apply();
#endif

    // A group without members is not installed. The number of its next hop stays zero, which no next hop has.
    @name("forwarding.next_hop_group") NextHopGroup() next_hop_group;

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
        ig_tm_md.ucast_egress_port = TO_PORT(port);
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

#ifdef FOUR_PIPES
    action no_tunnel() {
        meta.verdict = DROP_NO_TUNNEL;
    }

    // The route to the other end of a tunnel. The egress of the next pipe adds the outer headers (tunnels.p4).
    @name("remote_route.remote") table remote_route {
        key = {
            hdr.remote.remote: exact @name("kind");
            hdr.remote.remote_id: exact @name("id");
        }
        actions = { set_next_hop; set_group; no_tunnel; }
        const default_action = no_tunnel();
        size = TUNNEL_ENDPOINTS;
    }
#endif

    apply {
        // Read the results of the edge.
        if (hdr.worker.isValid()) {
            from_worker();
#ifndef FOUR_PIPES
        } else if (hdr.packet_out.isValid() && hdr.packet_out.op == PACKET_OUT_SEND) {
            send();
        } else if (hdr.packet_out.isValid()) {
            from_controller();
#endif
        } else {
            arrival.apply(hdr, meta, ig_prsr_md.parser_err);
        }
        if (meta.direction != Direction.TRANSIT && hdr.udp.isValid() && hdr.udp.checksum != 0) { // zero: none (RFC 768)
            meta.update_udp = 1;
        }
        segments.apply(hdr, meta);
#ifndef FOUR_PIPES
        headroom.apply(meta);
#endif
        policy.apply(meta);
        if (meta.has_no_policy == 1) {
            meta.verdict = DROP_VIP_NO_SERVER;
        }

        // The server that the cookie names, and that of the hash.
#ifndef FOUR_PIPES
        retrieve.apply(hdr, meta);
#endif
        maglev.apply(meta);

        // Steps that others do not wait for
        read_clock();
        departure.apply(hdr);
#ifdef FOUR_PIPES
        scheduling_departure.apply(hdr, meta);
#endif

        // Read the loads of a server's packet.
        read_loads.apply(hdr, meta);
        if (hdr.fold.isValid() && hdr.udp.isValid()) {
            read_quic_loads();
        }

        // Choose the server of a client's packet, and rewrite it.
        root.apply(hdr, meta);
        handshake.apply(hdr, meta);
        assign.apply(meta);
        second_hop.apply(hdr, meta); // the steps before concern other packets, and need not wait for it
        candidate.apply(hdr, meta);
        fallback.apply(hdr, meta);
        recent.apply(hdr, meta);
        recent_candidate.apply(meta);
        masking.apply(hdr, meta);
        if (meta.direction == Direction.UP) {
            choice.apply(hdr, meta);
        } else {
            insight.apply(hdr, meta);
            filter.apply(meta);
        }
        if (hdr.tcp.isValid()) {
            second_hop_mark.apply(hdr, meta);
        }
        if (meta.direction == Direction.UP && meta.verdict == VERDICT_CONTINUE) {
            server.apply(hdr, meta);
        }

        hdr.fold.setInvalid();
#ifdef FOUR_PIPES
        if (hdr.new_client.isValid()) {
            ig_dprsr_md.digest_type = DIGEST_NEW_CLIENT;
        }
        hdr.site.setInvalid();
        hdr.new_client.setInvalid();
        hdr.gate.setInvalid();
#endif

        // Change the tree.
        if (meta.direction != Direction.WORKER && meta.tree.op != TREE_NONE && meta.is_repeated == 0) {
            worker_mirror.apply(meta, ig_dprsr_md.mirror_type);
        }
        read_best();

        // Choose the port, and carry out the verdict.
        if (meta.direction == Direction.CONTROLLER && meta.verdict != VERDICT_REPLY || meta.direction == Direction.WORKER) {
            ig_dprsr_md.drop_ctl = 1;
        } else {
            if (meta.verdict == VERDICT_CONTINUE) {
                if (hdr.ipv4.isValid()) {
                    if (hdr.ipv4.ttl <= 1) {
                        meta.verdict = DROP_TTL;
                    } else {
                        LOOK_UP(ipv4_lpm)
                        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                    }
                } else {
                    if (hdr.ipv6.hop_limit <= 1) {
                        meta.verdict = DROP_TTL;
                    } else {
                        LOOK_UP(ipv6_lpm)
                        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                    }
                }
            }
            if (meta.direction == Direction.UP && meta.at_cookie_address == 1) {
                hdr.ipv6.dst[63:0] = meta.cookie_word; // the server's address at which the client knows it
            }
            if (group_id != 0) {
                next_hop_group.apply(meta, group_id, next_hop_id);
            }
            if (meta.verdict == VERDICT_CONTINUE) {
                if (next_hop.apply().miss) {
                    drops.count(DROP_NO_NEXT_HOP, CORE_BYTES);
                } else if (meta.direction != Direction.TRANSIT) {
                    outcomes.count(meta.outcome, CORE_BYTES);
                }
            } else if (meta.verdict == DROP_SERVER_GONE && meta.outcome == OUTCOME_RETRIEVED_HANDSHAKE) {
                ig_dprsr_md.resubmit_type = RESUBMIT;
            } else if (meta.verdict != VERDICT_REPLY) {
                drops.count(meta.verdict, CORE_BYTES);
                ig_dprsr_md.drop_ctl = 1;
            }
        }
    }
}

control CoreIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                            in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Ipv4Checksum() ipv4_checksum;
    TransportChecksum() transport_checksum;
    Mirror() worker_mirror;
    Resubmit() resubmit;
#ifdef FOUR_PIPES
    @name("new_client_t") Digest<new_client_t>() new_client;
#endif

    apply {
        ipv4_checksum.apply(hdr, meta);
        transport_checksum.apply(hdr, meta);
        if (ig_dprsr_md.mirror_type == MIRROR_WORKER) {
            worker_mirror.emit<worker_t>((MirrorId_t)meta.mirror_session,
                                         { meta.mirror_kind, meta.tree.op, meta.tree_depth, meta.tree.slot, meta.tree.sid,
                                           meta.tree.score, 0, meta.worker_best });
        }
        if (ig_dprsr_md.resubmit_type == RESUBMIT) {
            resubmit.emit<resubmitted_t>({ meta.second_pass_kind, 0, 0, 0 });
        }
#ifdef FOUR_PIPES
        if (ig_dprsr_md.digest_type == DIGEST_NEW_CLIENT) {
            new_client.pack({ hdr.new_client.version, hdr.new_client.prefix });
        }
#endif
        packet.emit(hdr);
    }
}

#ifndef FOUR_PIPES
// Packets of the edge pass on their way to ingress. With schedulers, the session of workers also leads to their pipe, and packets
// for that pipe end here.
parser CoreEgressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        bit<8> kind = packet.lookahead<bit<8>>();
        transition select(kind) {
            INTERNAL_WORKER: worker;
            default: accept;
        }
    }

    state worker {
        packet.extract(hdr.worker);
        transition accept;
    }

}

control CoreEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
                   in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                   inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                   inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    TreeWorker() tree_worker;

    apply {
        if (hdr.worker.isValid()) {
            tree_worker.apply(hdr.worker);
        }
    }
}

control CoreEgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                           in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
        packet.emit(hdr);
    }
}
#endif

#endif
