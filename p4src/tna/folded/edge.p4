// SPDX-License-Identifier: Apache-2.0
// The edge of the folded pipeline, with all front-panel ports. Its ingress checks packets, replies to requests for the
// switch, finds the VIP, reads QUIC cookies and limits clients. Its egress is the last block that a packet passes,
// and marks packets if the queue of the port was long.
#ifndef FRONTAGE_TNA_FOLDED_EDGE_P4
#define FRONTAGE_TNA_FOLDED_EDGE_P4

// The port by which the packet entered the switch
#ifdef FOUR_PIPES
#define ARRIVAL_PORT hdr.gate.ingress_port
#else
#define ARRIVAL_PORT ig_intr_md.ingress_port
#endif

FOLD_ALIASES("edge")
control EdgeIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
                    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) edge_drops;

    Vip() vip;
    Ports() ports;
    Lengths() lengths;
    Sources() sources;
    ParseFailure() parse_failure;
    @name("vip") Addresses() addresses;
    UpHash() up_hash;
    DownHash() down_hash;
    AddressHash() address_hash;
    ConnectionIndex() connection_index;
    HeaderChecks() header_checks;
    Neighbor() neighbor;
    NeighborRest() neighbor_rest;
    Learning() learning;
    Verdict() verdict;
    Fragments() fragments;
    Checker() checker;
    CookieForm() cookie_form;
    @name("unseal.open") Unseal() unseal;
    Datagrams() datagrams;
    @name("quic_cookies") QuicRetrieval() quic_retrieval;
    @name("quic_cookies") QuicSource() quic_source;
    @name("masking") QuicMasking() quic_masking;
    Openings() openings;
    Limits() limits;
    Refusal() refusal;
    @name("limits") LastVerdict() last_verdict;
    RealServers() real_servers;
    Departure() reply_departure;
    Fold() fold;
#ifdef FOUR_PIPES
    SegmentRank() segment_rank;
    DatagramRank() datagram_rank;
#endif

    action enter_core() {
        ig_tm_md.ucast_egress_port = meta.ingress_port | CORE_PORT;
    }

    apply {
        // Read the packet before its addresses change.
        meta.ingress_port = ARRIVAL_PORT;
        hdr.fold.setValid();
        up_hash.apply(hdr, meta);
        sources.apply(hdr, meta);

        // Find the VIP and the direction. A server's packet gets the VIP's source address.
        vip.apply(hdr, meta);
        addresses.apply(hdr, meta);
        checker.apply(hdr, meta);
        cookie_form.apply(hdr, meta);
        unseal.apply(meta);

        // Check the packet, and reply if it is a request to the switch itself.
        ports.apply(meta, ARRIVAL_PORT);
        parse_failure.apply(meta, ig_prsr_md.parser_err);
        lengths.apply(hdr, meta);
        header_checks.apply(hdr, meta);
        neighbor.apply(hdr, meta, ARRIVAL_PORT, ig_tm_md.ucast_egress_port);
        datagrams.apply(hdr, meta);
        real_servers.apply(hdr, meta);
        verdict.apply(hdr, meta);

        // Steps that others do not wait for: here, the hash units have room.
        down_hash.apply(hdr, meta);
        connection_index.apply(hdr, meta);
        address_hash.apply(hdr, meta);
        neighbor_rest.apply(hdr, meta);
        if (meta.verdict == VERDICT_REPLY) {
            reply_departure.apply(hdr);
        } else if (meta.verdict == VERDICT_CONTINUE) {
            fragments.apply(hdr, meta);
        }
        learning.apply(hdr, meta, ig_dprsr_md.digest_type);

#ifdef FOUR_PIPES
        segment_rank.apply(hdr, meta);
        datagram_rank.apply(hdr, meta);
#endif

        // Check the cookies of QUIC, and what clients may send. Limits do not concern packets that a server refused.
        openings.apply(hdr, meta);
        if (meta.direction == Direction.UP) {
            quic_retrieval.apply(hdr, meta);
        } else {
            quic_source.apply(hdr, meta);
        }
        refusal.apply(hdr, meta);
        fold.apply(hdr, meta);
        limits.apply(hdr, meta);
        last_verdict.apply(meta);
        quic_masking.apply(hdr, meta);

        if (meta.verdict == VERDICT_CONTINUE) {
            enter_core();
        } else if (meta.verdict == VERDICT_REPLY) {
            hdr.fold.setInvalid();
#ifdef FOUR_PIPES
            hdr.gate.setInvalid();
#endif
        } else {
            edge_drops.count(meta.verdict, EDGE_BYTES);
            ig_dprsr_md.drop_ctl = 1;
        }
    }
}

control EdgeIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                            in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Ipv4Checksum() ipv4_checksum;
    TransportChecksum() transport_checksum;
    AdvertisementChecksum() advertisement_checksum;
    @name("new_neighbor_t") Digest<new_neighbor_t>() new_neighbor;

    apply {
        ipv4_checksum.apply(hdr, meta);
        transport_checksum.apply(hdr, meta);
        advertisement_checksum.apply(hdr, meta);
        if (ig_dprsr_md.digest_type == DIGEST_NEW_NEIGHBOR) {
            new_neighbor.pack({ meta.sender.kind, meta.ingress_port, meta.sender.address, meta.sender.mac, meta.sender.source });
        }
        packet.emit(hdr);
    }
}

#endif
