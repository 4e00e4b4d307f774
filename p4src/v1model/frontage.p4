// SPDX-License-Identifier: Apache-2.0
// Frontage's data plane for v1model: BMv2's simple_switch and softswitch.
//
//               +------------------- ingress --------------------+          +--------- egress ----------+
//     parser -> | ports           may this port send at all?     |          | ecn         CE marks      |
//      ^  ^     | validation      drop malformed packets         |          | departures  queue depth   |
//      |  |     | neighbor        reply to ARP, NDP, ping        |          | masking     dynamic to    |
//      |  |     | tunnel          accept, remove outer headers   |          |             static cookie |
//      |  |     | vip, checker    which VIP, direction; a check? | -> queue | copies      of first      | -> deparser
//      |  |     | remote_servers  by the server's own tunnel?    |          |             flights to    |
//      |  |     | real_servers    may it send as this server?    |          |             more sites    |
//      |  |     | unseal          read the QUIC cookie           |          |                           |
//      |  |     | region, limits  locate and limit the client    |          +------------+--------------+
//      |  |     | demand          count handshakes               |                       |
//      |  |     | steering        which site                     |                       |
//      |  |     | syn_defence     SYN floods: verify, answer     |                       |
//      |  |     | cclb4           which server (4 phases)        |                       |
//      |  |     | mss             segments that fit in tunnels   |                       |
//      |  |     | encapsulation   into a tunnel                  |                       |
//      |  |     | too_long        reply if it does not fit       |                       |
//      |  |     | forwarding      longest prefix match           |                       |
//      |  |     | scheduler       AIFO, SP-PIFO                  |                       |
//      |  |     +--------+--------------------+------------------+                       |
//      |  +-- resubmit --+ (tunnel, cclb4)    | clone                                    |
//      +-- recirculate: worker packets -------+------------------------------------------+
//                                             +-- samples: to the controller
#include <core.p4>
#include <v1model.p4>

#include "../include/size.p4"
#include "../include/drop.p4"
#include "../include/outcome.p4"
#include "arch.p4"
#include "../include/headers.p4"
#include "../include/metadata.p4"

#include "parser.p4"
#include "counters.p4"
#include "stateful.p4"
#include "scheduling.p4"
#include "window.p4"
#include "worker.p4"
#include "samples.p4"
#include "hash.p4"
#include "checksum.p4"
#include "server_loads.p4"

#include "../control/ports.p4"
#include "../control/samples.p4"
#include "../control/excess.p4"
#include "../control/validation.p4"
#include "../control/neighbor.p4"
#include "../control/learning.p4"
#include "../control/remote_servers.p4"
#include "../control/tunnel.p4"
#include "../control/mss.p4"
#include "../control/too_long.p4"
#include "../control/encapsulation.p4"
#include "../control/copies.p4"
#include "../control/transport.p4"
#include "../control/icmp_errors.p4"
#include "../control/vip.p4"
#include "../control/fragments.p4"
#include "../control/checker.p4"
#include "../control/real_servers.p4"
#include "../control/cookie.p4"
#include "../control/cookie6.p4"
#include "../control/unseal.p4"
#include "../control/region.p4"
#include "../control/limits.p4"
#include "../control/demand.p4"
#include "../control/steering.p4"
#include "../control/siphash.p4"
#include "../control/syn_defence.p4"
#include "../control/syn_answer.p4"
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
#include "../control/openings.p4"
#include "../control/groups.p4"
#include "../control/forwarding.p4"
#include "../control/rank.p4"
#include "../control/aifo.p4"
#include "../control/sppifo.p4"
#include "../control/scheduler.p4"
#include "../control/masking.p4"
#include "../control/ecn.p4"

// The ingress port of packets from the controller.
#ifndef CPU_PORT
#define CPU_PORT 510
#endif

parser FrontageParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    PacketParser() packet_parser;

    state start {
        transition select(standard_metadata.ingress_port, standard_metadata.instance_type) {
            (CPU_PORT, _): from_controller;
            (_, INSTANCE_RECIRCULATED): accept; // a worker packet: metadata only
            default: from_network;
        }
    }

    state from_controller {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state from_network {
        packet_parser.apply(packet, hdr, meta);
        transition accept;
    }
}

control FrontageVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FrontageIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(DROP_REASONS, CounterType.packets_and_bytes) drops;
    counter(OUTCOMES, CounterType.packets_and_bytes) outcomes;
    counter(DISCIPLINES, CounterType.packets) workers;

    Ports() ports;
    ParseFailure() parse_failure;
    Excess() frame_excess;
    Validation() validation;
    ChecksumResidue() checksum_residue;
    Neighbor() neighbor;
    NeighborMessage() neighbor_message;
    Learning() learning;
    Tunnel() tunnel;
    QuoteReply() quote_reply;
    Vip() vip;
    ReporterRestore() reporter_restore;
    Fragments() fragments;
    Refusal() refusal;
    Checker() checker;
    RemoteServers() remote_servers;
    RealServers() real_servers;
    Unseal() unseal;
    ConnectionHash() connection_hash;
    Region() region;
    Limits() limits;
    Demand() demand;
    Steering() steering;
    SynDefence() syn_defence;
    SynAnswer() syn_answer;
    Reading() reading;
    Cclb4() cclb4;
    Openings() openings;
    IcmpErrorOutcome() error_outcome;
    Mss() mss;
    Encapsulation() encapsulation;
    TooLong() too_long;
    Forwarding() forwarding;
    CookieAddress() cookie_address;
    Rank() rank;
    Scheduler() scheduler;
    FlowSamples() flow_samples;
    DropSamples() drop_samples;
    ServerLoads() server_loads;

    apply {
        if (meta.second_pass == 0 && meta.from_tunnel == 0) {
            // Kept for a second pass: BMv2 clears ingress_port when it resubmits.
            meta.ingress_port = standard_metadata.ingress_port;
            meta.now = standard_metadata.ingress_global_timestamp[35:20];
        }

        if (hdr.packet_out.isValid() && hdr.packet_out.op == PACKET_OUT_SEND) {
            // A frame of the controller leaves as it is.
            meta.egress_port = (port_t)hdr.packet_out.slot;
            meta.verdict = VERDICT_REPLY;
        } else if (hdr.packet_out.isValid()) {
            meta.direction = Direction.CONTROLLER;
        } else if (standard_metadata.instance_type == INSTANCE_RECIRCULATED) {
            meta.direction = Direction.WORKER;
        } else {
            // Check the packet, and reply if it is a request to the switch itself.
            ports.apply(meta);
            if (meta.verdict == VERDICT_CONTINUE) {
                bit<16> capacity = (bit<16>)standard_metadata.packet_length |-| 14;
                if (meta.from_tunnel == 1) {
                    capacity = meta.inner_length;
                    if (hdr.gre_keyless.isValid()) {
                        capacity = capacity + 4; // the first pass does not know whether there is a key
                    }
                }
                bit<16> excess;
                frame_excess.apply(hdr, capacity, excess);
                parse_failure.apply(meta, standard_metadata.parser_error);
                validation.apply(hdr, meta, excess, standard_metadata.checksum_error);
            }
            checksum_residue.apply(hdr, meta);
            if (meta.verdict == VERDICT_CONTINUE && meta.from_tunnel == 0) {
                neighbor_message.apply(hdr, meta);
                neighbor.apply(hdr, meta);
                learning.apply(meta);
            }

            // Find the VIP and the direction.
            if (meta.verdict == VERDICT_CONTINUE) {
                tunnel.apply(hdr, meta);
            }
            if (meta.verdict == VERDICT_CONTINUE && meta.direction == Direction.TRANSIT) {
                if (!IS_FROM_SERVER_TUNNEL) {
                    quote_reply.apply(hdr, meta);
                }
                vip.apply(hdr, meta);
                if (meta.direction == Direction.TRANSIT) {
                    reporter_restore.apply(hdr, meta);
                }
                if (meta.verdict == VERDICT_CONTINUE) {
                    fragments.apply(hdr, meta);
                }
                checker.apply(hdr, meta);
                remote_servers.apply(meta);
                refusal.apply(hdr, meta);
            }
            if (meta.verdict == VERDICT_CONTINUE && meta.second_pass == 0) {
                real_servers.apply(hdr, meta);
                if (meta.verdict == VERDICT_CONTINUE && hdr.udp.isValid()) {
                    unseal.apply(hdr, meta);
                }
                rank.apply(hdr, meta);
            }

            // Read the cookie, and choose the site.
            if (meta.verdict == VERDICT_CONTINUE && (meta.direction != Direction.TRANSIT || meta.from_tunnel == 1)) {
                connection_hash.apply(hdr, meta);
                if (meta.direction == Direction.UP || meta.direction == Direction.DOWN) {
                    reading.apply(hdr, meta);
                }
                if (meta.verdict == VERDICT_CONTINUE && meta.second_pass == 0 && !IS_CHECK) {
                    region.apply(hdr, meta);
                    limits.apply(hdr, meta);
                    if (meta.verdict == VERDICT_CONTINUE) {
                        demand.apply(hdr, meta);
                        steering.apply(hdr, meta);
                    }
                }
            }
            if (meta.verdict == VERDICT_CONTINUE && meta.direction == Direction.UP && hdr.tcp.isValid()
                && meta.remote == Remote.NONE && meta.is_refused == 0 && !IS_CHECK && !IS_ERROR) {
                syn_defence.apply(hdr, meta);
            }
        }

        ipv4_t vip4 = hdr.ipv4.dst;
        ipv6_t vip6 = hdr.ipv6.dst;
        bit<16> vip_port = hdr.ports.dst_port;

        // Choose the server. An operation from the controller ends here, in the tournament tree.
        if (meta.verdict == VERDICT_CONTINUE && meta.remote == Remote.NONE
            && (meta.direction == Direction.UP || meta.direction == Direction.DOWN
                || meta.direction == Direction.CONTROLLER)) {
            cclb4.apply(hdr, meta);
            error_outcome.apply(meta);
            syn_answer.apply(hdr, meta);
            if (meta.verdict == VERDICT_CONTINUE) {
                openings.apply(hdr, meta);
            }
        }
        if (meta.direction == Direction.CONTROLLER) {
            meta.verdict = VERDICT_CONSUME;
        }

        // Choose the egress port and its queue. A worker packet names the port and ends in the scheduler's registers.
        if (meta.verdict == VERDICT_CONTINUE && meta.direction != Direction.WORKER) {
            mss.apply(hdr, meta);
            if (meta.remote != Remote.NONE) {
                Remote remote = meta.remote;
                bit<16> remote_id = meta.remote_id;
                encapsulation.apply(hdr, meta, remote, remote_id);
                too_long.apply(hdr, meta, vip4, vip6, vip_port);
            }
            if (meta.verdict == VERDICT_CONTINUE) {
                forwarding.apply(hdr, meta);
                cookie_address.apply(hdr, meta);
            }
        }
        if (meta.verdict == VERDICT_CONTINUE || meta.verdict == VERDICT_REPLY) {
            scheduler.apply(meta);
        }
        if (meta.direction == Direction.WORKER) {
            workers.count((bit<32>)(bit<8>)meta.discipline);
            meta.verdict = VERDICT_CONSUME;
        }

        // Carry out the verdict.
        if (meta.clone_session != 0) {
            clone_preserving_field_list(CloneType.I2E, (bit<32>)meta.clone_session, COPY_FIELDS);
        }
        if (meta.verdict == VERDICT_CONTINUE || meta.verdict == VERDICT_REPLY) {
            standard_metadata.egress_spec = meta.egress_port;
            standard_metadata.priority = meta.priority;
            if (meta.sample_threshold != 0) {
                flow_samples.apply(meta);
            }
            // v1model makes one clone per packet.
            if (meta.bound_decrement != 0 && meta.clone_session == 0) {
                clone_preserving_field_list(CloneType.I2E, WORKER_SESSION, WORKER_FIELDS);
            } else if (meta.sample_kind != SAMPLE_NONE && meta.clone_session == 0) {
                clone_preserving_field_list(CloneType.I2E, SAMPLE_SESSION, SAMPLE_FIELDS);
            }
            if (meta.direction != Direction.TRANSIT) {
                outcomes.count((bit<32>)meta.outcome);
                server_loads.apply(hdr, meta);
            }
        } else if (meta.verdict == VERDICT_RESUBMIT) {
            resubmit_preserving_field_list(RESUBMIT_FIELDS);
        } else {
            if (meta.verdict != VERDICT_CONSUME) {
                drops.count((bit<32>)meta.verdict);
                drop_samples.apply(meta);
                if (meta.sample_kind != SAMPLE_NONE && meta.clone_session == 0) {
                    meta.egress_port = 0;
                    clone_preserving_field_list(CloneType.I2E, SAMPLE_SESSION, SAMPLE_FIELDS);
                }
            }
            mark_to_drop(standard_metadata);
        }
    }
}

control FrontageEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Masking() masking;
    QuoteRewrite() quote_rewrite;
    Copies() copies;
    ChecksumResidue() checksum_residue;
    Ecn() ecn;
    ChecksumUpdate() checksum_update;
    Departures() departures;
    SampleHeader() sample_header;
    counter(DROP_REASONS, CounterType.packets_and_bytes) egress_drops;

    apply {
        if (standard_metadata.instance_type == INSTANCE_NORMAL) {
            if (meta.discipline != Discipline.NONE) {
                ecn.apply(hdr, meta, standard_metadata.enq_qdepth);
                if (meta.discipline == Discipline.AIFO) {
                    departures.apply(meta, standard_metadata.deq_qdepth);
                    if (meta.report_departure == 1) {
                        clone_preserving_field_list(CloneType.E2E, WORKER_SESSION, WORKER_FIELDS);
                    }
                }
            }
            masking.apply(hdr, meta, meta.sid);
            quote_rewrite.apply(hdr, meta);
            checksum_update.apply(hdr, meta);
            if (hdr.too_long.isValid() && hdr.outer_ipv4.isValid()) {
                truncate((bit<32>)(14 + 28 + 20 + meta.excerpt_bytes));
            } else if (hdr.too_long.isValid()) {
                truncate((bit<32>)(14 + 48 + 40 + meta.excerpt_bytes));
            }
            if (meta.sample_kind == SAMPLE_FLOW && meta.takes_postcards == 1 && meta.report_departure == 0) {
                meta.sample_kind = SAMPLE_POSTCARD;
                meta.hop_latency = (bit<32>)(standard_metadata.egress_global_timestamp - standard_metadata.ingress_global_timestamp);
                meta.queue_depth = standard_metadata.deq_qdepth;
                clone_preserving_field_list(CloneType.E2E, SAMPLE_SESSION, SAMPLE_FIELDS);
            }
        } else if (meta.sample_kind != SAMPLE_NONE) {
            sample_header.apply(hdr, meta, standard_metadata.packet_length);
            truncate(SAMPLE_HEADER_BYTES + SAMPLE_BYTES);
        } else if (meta.clone_session != 0) {
            checksum_residue.apply(hdr, meta);
            copies.apply(hdr, meta, standard_metadata.egress_rid);
            checksum_update.apply(hdr, meta);
            if (meta.verdict != VERDICT_CONTINUE) {
                egress_drops.count((bit<32>)meta.verdict);
                mark_to_drop(standard_metadata);
            }
        } else { // a worker packet
            recirculate_preserving_field_list(WORKER_FIELDS);
        }
    }
}

// The headers that a message about a packet that is too long quotes (control/too_long.p4).
#define QUOTED_IPV4 \
    hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.reserved, \
    hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, \
    hdr.ipv4.checksum, hdr.ipv4.src, hdr.ipv4.dst
#define QUOTED_IPV6 \
    hdr.ipv6.version, hdr.ipv6.traffic_class, hdr.ipv6.flow_label, hdr.ipv6.payload_length, hdr.ipv6.next_header, \
    hdr.ipv6.hop_limit, hdr.ipv6.src, hdr.ipv6.dst
#define QUOTED_TCP \
    hdr.ports.src_port, hdr.ports.dst_port, hdr.tcp.seq, hdr.tcp.ack, hdr.tcp.data_offset, hdr.tcp.ck, hdr.tcp.second_hop, \
    hdr.tcp.reserved, hdr.tcp.flags, hdr.tcp.window, hdr.tcp.checksum, hdr.tcp.urgent
#define QUOTED_UDP hdr.ports.src_port, hdr.ports.dst_port, hdr.udp.length, hdr.udp.checksum
#define OUTER_PSEUDO_HEADER \
    hdr.outer_ipv6.src, hdr.outer_ipv6.dst, 16w0, hdr.outer_ipv6.payload_length, 24w0, hdr.outer_ipv6.next_header

control FrontageComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // All of a neighbor advertisement is in parsed headers, so that its checksum is computed afresh (RFC 4443,
        // 2.3).
        update_checksum(meta.is_advertisement == 1,
            { hdr.ipv6.src, hdr.ipv6.dst, 16w0, hdr.ipv6.payload_length, 24w0, hdr.ipv6.next_header,
              hdr.icmp.icmp_type, hdr.icmp.icmp_code,
              hdr.ndp.router, hdr.ndp.solicited, hdr.ndp.override, hdr.ndp.reserved, hdr.ndp.target,
              hdr.ndp_option.option_type, hdr.ndp_option.length, hdr.ndp_option.mac },
            hdr.icmp.checksum, HashAlgorithm.csum16);
        // A message about a packet that is too long, with the packet's headers.
        update_checksum(hdr.too_long.isValid() && hdr.outer_ipv4.isValid() && hdr.tcp.isValid(),
            { hdr.too_long.icmp_type, hdr.too_long.icmp_code, hdr.too_long.mtu, QUOTED_IPV4, QUOTED_TCP },
            hdr.too_long.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.too_long.isValid() && hdr.outer_ipv4.isValid() && hdr.udp.isValid(),
            { hdr.too_long.icmp_type, hdr.too_long.icmp_code, hdr.too_long.mtu, QUOTED_IPV4, QUOTED_UDP },
            hdr.too_long.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.too_long.isValid() && hdr.outer_ipv6.isValid() && hdr.tcp.isValid(),
            { OUTER_PSEUDO_HEADER, hdr.too_long.icmp_type, hdr.too_long.icmp_code, hdr.too_long.mtu, QUOTED_IPV6,
              QUOTED_TCP },
            hdr.too_long.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.too_long.isValid() && hdr.outer_ipv6.isValid() && hdr.udp.isValid(),
            { OUTER_PSEUDO_HEADER, hdr.too_long.icmp_type, hdr.too_long.icmp_code, hdr.too_long.mtu, QUOTED_IPV6,
              QUOTED_UDP },
            hdr.too_long.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.outer_ipv4.isValid(),
            { hdr.outer_ipv4.version, hdr.outer_ipv4.ihl, hdr.outer_ipv4.tos, hdr.outer_ipv4.total_length,
              hdr.outer_ipv4.identification,
              hdr.outer_ipv4.reserved, hdr.outer_ipv4.dont_fragment, hdr.outer_ipv4.more_fragments,
              hdr.outer_ipv4.fragment_offset,
              hdr.outer_ipv4.ttl, hdr.outer_ipv4.protocol, hdr.outer_ipv4.src, hdr.outer_ipv4.dst },
            hdr.outer_ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FrontageDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.outer_ipv4);
        packet.emit(hdr.outer_ipv6);
        packet.emit(hdr.outer_ports);
        packet.emit(hdr.outer_udp);
        packet.emit(hdr.vxlan);
        packet.emit(hdr.gre);
        packet.emit(hdr.gre_keyless);
        packet.emit(hdr.geneve);
        packet.emit(hdr.too_long);
        packet.emit(hdr.inner_ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.ipv6_extensions);
        packet.emit(hdr.icmp);
        packet.emit(hdr.icmp_error);
        packet.emit(hdr.quoted_ipv4);
        packet.emit(hdr.quoted_ipv6);
        packet.emit(hdr.quoted_ports);
        packet.emit(hdr.quoted_tcp);
        packet.emit(hdr.quoted_mss);
        packet.emit(hdr.quoted_timestamp);
        packet.emit(hdr.quoted_udp);
        packet.emit(hdr.ndp);
        packet.emit(hdr.ndp_option);
        packet.emit(hdr.ports);
        packet.emit(hdr.tcp);
        packet.emit(hdr.tcp_options);
        packet.emit(hdr.tcp_timestamp);
        packet.emit(hdr.syn_options);
        packet.emit(hdr.udp);
        packet.emit(hdr.quic_long);
        packet.emit(hdr.quic_short);
        packet.emit(hdr.connection_id);
    }
}

V1Switch(
    FrontageParser(),
    FrontageVerifyChecksum(),
    FrontageIngress(),
    FrontageEgress(),
    FrontageComputeChecksum(),
    FrontageDeparser()
) main;
