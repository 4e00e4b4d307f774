// SPDX-License-Identifier: Apache-2.0
// The egress of the core, before its ingress: Artemis and Auspice. It opens TCP's cookie, which may name a server of another site,
// counts demand, and chooses the site. The ingress of the core only routes packets for other sites.
#ifndef FRONTAGE_TNA_FOLDED_SITE_P4
#define FRONTAGE_TNA_FOLDED_SITE_P4

// Packets of the edge, workers for the trees, and reports for the schedulers, which end here.
parser SiteParser(packet_in packet, out headers_t hdr, out metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        bit<8> kind = packet.lookahead<bit<8>>();
        transition select(kind) {
            INTERNAL_WORKER: worker;
            INTERNAL_QUEUE: queue;
            INTERNAL_GATE: gate;
        }
    }

    state worker {
        packet.extract(hdr.worker);
        transition accept;
    }

    state queue {
        packet.extract(hdr.queue);
        transition accept;
    }

    state gate {
        packet.extract(hdr.gate);
        packet.extract(hdr.fold);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, 0, PROTO_UDP): udp;
            (6, 0, 0, PROTO_UDP): option1_then_udp;
            (7, 0, 0, PROTO_UDP): option2_then_udp;
            (8, 0, 0, PROTO_UDP): option3_then_udp;
            (9, 0, 0, PROTO_UDP): option4_then_udp;
            (10, 0, 0, PROTO_UDP): option5_then_udp;
            (11, 0, 0, PROTO_UDP): option6_then_udp;
            (12, 0, 0, PROTO_UDP): option7_then_udp;
            (13, 0, 0, PROTO_UDP): option8_then_udp;
            (14, 0, 0, PROTO_UDP): option9_then_udp;
            (15, 0, 0, PROTO_UDP): option10_then_udp;
            (5, 0, 0, PROTO_TCP): tcp;
            (6, 0, 0, PROTO_TCP): option1_then_tcp;
            (7, 0, 0, PROTO_TCP): option2_then_tcp;
            (8, 0, 0, PROTO_TCP): option3_then_tcp;
            (9, 0, 0, PROTO_TCP): option4_then_tcp;
            (10, 0, 0, PROTO_TCP): option5_then_tcp;
            (11, 0, 0, PROTO_TCP): option6_then_tcp;
            (12, 0, 0, PROTO_TCP): option7_then_tcp;
            (13, 0, 0, PROTO_TCP): option8_then_tcp;
            (14, 0, 0, PROTO_TCP): option9_then_tcp;
            (15, 0, 0, PROTO_TCP): option10_then_tcp;
            default: accept;
        }
    }

    IPV4_OPTIONS_THEN(udp)
    IPV4_OPTIONS_THEN(tcp)

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            PROTO_HOPOPT: ipv6_extension0;
            PROTO_ROUTING: ipv6_extension0;
            PROTO_DSTOPT: ipv6_extension0;
            PROTO_TCP: tcp;
            PROTO_UDP: udp;
            default: accept;
        }
    }

    state ipv6_extension0 {
        packet.extract(hdr.ipv6_extensions[0]);
        transition select(hdr.ipv6_extensions[0].next_header, hdr.ipv6_extensions[0].length) {
            (PROTO_HOPOPT, 0): ipv6_extension1;
            (PROTO_ROUTING, 0): ipv6_extension1;
            (PROTO_DSTOPT, 0): ipv6_extension1;
            (PROTO_TCP, 0): tcp;
            (PROTO_UDP, 0): udp;
            default: accept;
        }
    }

    state ipv6_extension1 {
        packet.extract(hdr.ipv6_extensions[1]);
        transition select(hdr.ipv6_extensions[1].next_header, hdr.ipv6_extensions[1].length) {
            (PROTO_TCP, 0): tcp;
            (PROTO_UDP, 0): udp;
            default: accept;
        }
    }

    // The parser only looks at the rest, which therefore needs no containers.
    state udp {
        packet.extract(hdr.ports);
        bit<40> words = packet.lookahead<bit<40>>();
        transition select(words[7:0]) {
            0x80 &&& 0x80: long_header;
            default: accept;
        }
    }

    state long_header {
        meta.has_long_header = 1;
        bit<80> words = packet.lookahead<bit<80>>();
        transition select(words[7:0]) {
            CID_LENGTH: connection_id;
            default: accept;
        }
    }

    state connection_id {
        bit<152> words = packet.lookahead<bit<152>>();
        meta.sequence = words[31:0];
        meta.named_sid = words[63:48];
        transition accept;
    }

    state tcp {
        packet.extract(hdr.ports);
        packet.extract(hdr.tcp);
        meta.sequence = hdr.tcp.seq;
        transition select(hdr.tcp.data_offset) {
            0 .. 7: accept;
            8: timestamp_of_3_words;
            9: mss_of_4_words;
            default: mss_of_5_words;
        }
    }

    // The layouts that the ingress of the edge knows (../parser.p4)
    state timestamp_of_3_words {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: timestamp;
            0x0402080a: timestamp;
            default: accept;
        }
    }

    state timestamp {
        bit<96> words = packet.lookahead<bit<96>>();
        meta.cookie_code = words[15:0];
        meta.has_timestamp = 1;
        transition accept;
    }

    state mss_of_4_words {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: timestamp;
            0x0402080a: timestamp;
            0x02040000 &&& 0xffff0000: timestamp_behind_mss;
            default: accept;
        }
    }

    state timestamp_behind_mss {
        bit<64> words = packet.lookahead<bit<64>>();
        transition select(words[31:0]) {
            0x0101080a: second_timestamp;
            0x0402080a: second_timestamp;
            default: accept;
        }
    }

    state second_timestamp {
        bit<128> words = packet.lookahead<bit<128>>();
        meta.cookie_code = words[15:0];
        meta.has_timestamp = 1;
        transition accept;
    }

    state mss_of_5_words {
        bit<32> word = packet.lookahead<bit<32>>();
        transition select(word) {
            0x0101080a: timestamp;
            0x0402080a: timestamp;
            0x02040000 &&& 0xffff0000: window_scale_behind_mss;
            default: accept;
        }
    }

    state window_scale_behind_mss {
        bit<64> words = packet.lookahead<bit<64>>();
        transition select(words[31:0]) {
            0x0101080a: second_timestamp;
            0x0402080a: second_timestamp;
            0x01030300 &&& 0xffffff00: timestamp_behind_window_scale;
            default: accept;
        }
    }

    state timestamp_behind_window_scale {
        bit<96> words = packet.lookahead<bit<96>>();
        transition select(words[31:0]) {
            0x0101080a: third_timestamp;
            0x0402080a: third_timestamp;
            default: accept;
        }
    }

    state third_timestamp {
        bit<160> words = packet.lookahead<bit<160>>();
        meta.cookie_code = words[15:0];
        meta.has_timestamp = 1;
        transition accept;
    }
}

// Headers of the results, the clock, and the hash of a response, which is that of its first flight.
control SiteArrival(inout headers_t hdr, inout metadata_t meta, in bit<48> time) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) response4;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) response6;

    action arrive() {
        hdr.site.setValid();
        hdr.site.kind = INTERNAL_SITE;
        hdr.site.outcome = 0;
        hdr.site.reserved = 0;
        hdr.site.has_cookie = 0;
        hdr.site.has_new_client = 0;
        hdr.remote.setValid();
        hdr.remote.kind = INTERNAL_REMOTE;
        hdr.remote.remote = 0;
        hdr.remote.remote_id = 0;
    }

    action read_clock() {
        IN_HASH { meta.now = 13w0 ++ 1w1 ++ time[47:30]; }
    }

    action hash_response4() {
        hdr.fold.connection_hash = response4.get({ hdr.ipv4.dst, hdr.ipv4.src, hdr.ports.dst_port, hdr.ports.src_port });
    }

    action hash_response6() {
        hdr.fold.connection_hash = response6.get({ hdr.ipv6.dst, hdr.ipv6.src, hdr.ports.dst_port, hdr.ports.src_port });
    }

    apply {
        arrive();
        read_clock();
        if (hdr.gate.is_response == 1 && hdr.ipv4.isValid()) {
            hash_response4();
        } else if (hdr.gate.is_response == 1) {
            hash_response6();
        }
    }
}

// Region of the client, as in control/region.p4.
control SiteRegion(in headers_t hdr, inout metadata_t meta) {
    action first_flight() {
        meta.is_first_flight = 1;
        meta.names_no_server = 1;
    }

    action name_no_server() {
        meta.names_no_server = 1;
    }

    @hidden table opening {
        key = {
            hdr.fold.direction: ternary;
            hdr.fold.is_check: ternary;
            hdr.gate.from_tunnel: ternary;
            hdr.fold.at_cookie_address: ternary;
            meta.has_long_header: ternary;
            hdr.tcp.isValid(): ternary;
            hdr.tcp.flags: ternary;
            meta.has_timestamp: ternary;
        }
        actions = { first_flight; name_no_server; NoAction; }
        const entries = {
            (Direction.UP, 0, 0, 0, 1, _, _, _): first_flight();
            (Direction.UP, 0, 0, 0, _, true, 0x02 &&& 0x12, _): first_flight();
            (Direction.UP, 0, 0, 0, _, true, _, 0): name_no_server();
        }
        const default_action = NoAction();
        size = 4;
    }

    action set_region(bit<16> region) {
        meta.region = region;
    }

    table client4 {
        key = { hdr.ipv4.src: lpm @name("src"); }
        actions = { set_region; NoAction; }
        const default_action = NoAction();
        size = CLIENT_PREFIXES;
    }

    table client6 {
        key = { hdr.ipv6.src: lpm @name("src"); }
        actions = { set_region; NoAction; }
        const default_action = NoAction();
        size = CLIENT_PREFIXES;
    }

    apply {
        opening.apply();
        if (meta.names_no_server == 1) {
            if (hdr.ipv4.isValid()) {
                client4.apply();
            } else {
                client6.apply();
            }
        }
    }
}

// Demand, as in control/demand.p4.
control SiteDemand(inout headers_t hdr, inout metadata_t meta) {
    Register<connection_entry_t, bit<16>>(RECENT_HANDSHAKES) recent;
    DemandCounter() handshakes;
    bit<32> cell;
    bit<16> limit;
    bit<16> distance; // to the limit
    bit<32> region;
    bit<32> fingerprint;
    bit<1> is_handshake;
    bit<1> is_new;

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(recent) replace = {
        void apply(inout connection_entry_t entry, out bit<1> result) {
            result = 0;
            if (entry.fingerprint != fingerprint || meta.now - entry.seen > RECENT_TICKS) {
                result = 1;
            }
            entry.fingerprint = fingerprint;
            entry.seen = meta.now;
        }
    };

    action set_counter_range(bit<32> base, bit<16> regions) {
        cell = base;
        limit = regions;
        is_handshake = 1;
    }

    table service {
        key = { hdr.fold.vip_id: exact @name("vip_id"); }
        actions = { set_counter_range; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    action read_fingerprint() {
        IN_HASH { fingerprint = hdr.fold.connection_hash ^ meta.sequence; }
    }

    action compare_region() {
        distance = limit |-| meta.region;
    }

    action widen_region() {
        IN_HASH { region = 16w0 ++ meta.region; }
    }

    action add_region() {
        cell = cell + region;
    }

    action replace_entry() {
        is_new = replace.execute(hdr.fold.connection_index);
    }

    action add_client4() {
        hdr.new_client.setValid();
        hdr.new_client.version = 4;
        hdr.new_client.prefix[47:32] = 0;
        hdr.site.has_new_client = 1;
    }

    action read_client4() {
        IN_HASH { hdr.new_client.prefix[31:0] = 8w0 ++ hdr.ipv4.src[31:8]; }
    }

    action add_client6() {
        hdr.new_client.setValid();
        hdr.new_client.version = 6;
        hdr.new_client.prefix = hdr.ipv6.src[127:80];
        hdr.site.has_new_client = 1;
    }

    apply {
        cell = 0;
        limit = 0;
        is_handshake = 0;
        is_new = 0;
        read_fingerprint();
        // A cookie of QUIC names a server, so the packet begins no connection.
        if (meta.is_first_flight == 1) {
            if (hdr.tcp.isValid() || (hdr.fold.may_hold_initial == 1 && meta.has_quic_cookie == 0)) {
                service.apply();
            }
        }
        compare_region();
        widen_region();
        if (distance != 0) {
            add_region();
        }
        if (is_handshake == 1) {
            replace_entry();
        }
        if (is_new == 1) {
            handshakes.apply(cell);
            if (meta.region == 0 && hdr.ipv4.isValid()) {
                add_client4();
                read_client4();
            } else if (meta.region == 0) {
                add_client6();
            }
        }
    }
}

// The server that a packet names. The edge reads checks and most cookies of QUIC; this control reads that of TCP, and connection
// ids in plaintext in the first packet of a handshake, which the core reads again.
control SiteCandidate(inout headers_t hdr, inout metadata_t meta) {
    action read_cookie() {
        IN_HASH { meta.cookie_sid = 4w0 ++ meta.opened.b ++ meta.opened.a[6:3]; }
    }

    action use_cookie() {
        meta.candidate_found = 1;
        meta.candidate_sid = meta.cookie_sid;
        hdr.fold.candidate_sid = meta.cookie_sid;
        hdr.site.has_cookie = 1;
    }

    action use_plain() {
        meta.candidate_found = 1;
        meta.candidate_sid = meta.named_sid;
    }

    action use_named() {
        meta.candidate_found = 1;
        meta.candidate_sid = hdr.fold.candidate_sid;
    }

    @hidden table candidate {
        key = {
            hdr.fold.direction: ternary;
            hdr.fold.is_check: ternary;
            hdr.fold.candidate_found: ternary;
            hdr.fold.cookie_form: ternary;
            hdr.fold.may_hold_initial: ternary;
            hdr.tcp.isValid(): ternary;
            hdr.tcp.flags: ternary;
            meta.has_timestamp: ternary;
            meta.is_opened: ternary;
            meta.opened.a[2:0]: ternary;
        }
        actions = { use_cookie; use_plain; use_named; NoAction; }
        const entries = {
            (Direction.UP, 0, 1, _, _, _, _, _, _, _): use_named();
            (Direction.UP, 0, _, _, _, true, 0x02 &&& 0x12, _, _, _): NoAction(); // SYN
            (Direction.UP, 0, _, _, _, true, _, 1, 1, 0): use_cookie();
            (Direction.UP, 0, _, FORM_PLAIN_CID, 1, false, _, _, _, _): use_plain();
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        read_cookie();
        candidate.apply();
    }
}

// Origins of the number of a tunnel's far end
const bit<8> TARGET_ORIGIN = 1;  // the site at which the client's packets enter
const bit<8> TARGET_NAME = 2;    // the server's site
const bit<8> TARGET_MAPPING = 3;
const bit<8> TARGET_SLOT = 4;    // of a dispatcher

// Steering, as in control/steering.p4. The results are in the headers remote (where the packet goes) and site.
control SiteSteering(inout headers_t hdr, inout metadata_t meta) {
    bit<16> number;        // of the service, and then of its deployment
    bit<1> is_service;
    bit<1> dispatched;
    bit<1> is_named;       // by a cookie or connection id
    bit<8> sid_site_id;    // zero: this one
    bit<8> mapped_site;

    action set_service(bit<8> local_site, bit<16> service) {
        meta.local_site = local_site;
        is_service = 1;
        number = service;
    }

    action use_dispatcher(bit<8> local_site) {
        meta.local_site = local_site;
        is_service = 1;
        dispatched = 1;
    }

    table service {
        key = { hdr.fold.vip_id: exact @name("vip_id"); }
        actions = { set_service; use_dispatcher; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    action set_deployment(bit<16> deployment) {
        number = deployment;
    }

    action no_deployment() {
        number = 0;
    }

    table deployment {
        key = { number: exact @name("service"); }
        actions = { set_deployment; @defaultonly no_deployment; }
        const default_action = no_deployment();
        size = VIPS;
    }

    action keep_local(bit<16> clone_session) {
        meta.clone_session = clone_session;
    }

    action to_site(bit<8> site, bit<16> clone_session) {
        mapped_site = site;
        meta.clone_session = clone_session;
    }

    table mapping {
        key = {
            number: exact @name("deployment");
            meta.region: exact @name("region");
        }
        actions = { keep_local; to_site; NoAction; }
        const default_action = NoAction();
        size = MAPPINGS;
    }

    table default_mapping {
        key = { number: exact @name("deployment"); }
        actions = { keep_local; to_site; NoAction; }
        const default_action = NoAction();
        size = DEPLOYMENTS;
    }

    action set_local_site() {
        is_named = 1;
    }

    action set_remote_site(bit<8> site) {
        is_named = 1;
        sid_site_id = site;
    }

    table sid_site {
        key = { meta.candidate_sid: lpm @name("sid"); }
        actions = { set_local_site; set_remote_site; NoAction; }
        const default_action = NoAction();
        size = SID_RANGES;
    }

    action stay() {
        meta.clone_session = 0;
    }

    action stay_with_copies() {}

    action steer(bit<8> outcome, bit<8> target) {
        hdr.site.outcome = outcome;
        hdr.remote.remote = (bit<8>)Remote.SITE;
        meta.target = target;
        meta.clone_session = 0;
    }

    action steer_with_copies() {
        hdr.site.outcome = OUTCOME_STEERED_SITE;
        hdr.remote.remote = (bit<8>)Remote.SITE;
        meta.target = TARGET_MAPPING;
    }

    action dispatch() {
        hdr.site.outcome = OUTCOME_STEERED_DISPATCHER;
        hdr.remote.remote = (bit<8>)Remote.DISPATCHER;
        meta.target = TARGET_SLOT;
        meta.clone_session = 0;
    }

    action respond() {
        hdr.site.outcome = OUTCOME_RESPONSE_CLIENT;
    }

    action drop() {
        meta.verdict = DROP_TUNNEL_INNER;
    }

    @hidden table decision {
        key = {
            hdr.gate.is_response: ternary;
            hdr.gate.to_site: ternary;
            hdr.gate.from_tunnel: ternary;
            is_service: ternary;
            is_named: ternary;
            sid_site_id: ternary;
            hdr.tcp.isValid(): ternary;
            meta.has_long_header: ternary;
            dispatched: ternary;
            mapped_site: ternary;
            hdr.fold.may_hold_initial: ternary;
            hdr.ipv4.isValid(): ternary;
            hdr.ipv4.ttl: ternary;
            hdr.ipv6.hop_limit: ternary;
        }
        actions = { stay; stay_with_copies; steer; steer_with_copies; dispatch; respond; drop; }
        const entries = {
            (1, 1, _, _, _, _, _, _, _, _, _, _, _, _): steer(OUTCOME_RESPONSE_SITE, TARGET_ORIGIN);
            (1, _, _, _, _, _, _, _, _, _, _, _, _, _): respond();
            (_, _, 1, 0, _, _, _, _, _, _, _, _, _, _): drop();
            (_, _, _, 0, _, _, _, _, _, _, _, _, _, _): stay();
            (_, _, 1, _, 1, _, _, _, _, _, _, _, _, _): stay();
            (_, _, _, _, 1, 0, _, _, _, _, _, _, _, _): stay();
            (_, _, _, _, 1, _, true, _, _, _, _, _, _, _): steer(OUTCOME_STEERED_COOKIE, TARGET_NAME);
            (_, _, _, _, 1, _, _, _, _, _, _, _, _, _): steer(OUTCOME_STEERED_CID, TARGET_NAME);
            (_, _, _, _, _, _, false, 0, _, _, _, _, _, _): stay(); // a datagram without a long header
            (_, _, _, _, _, _, _, _, 1, _, _, _, _, _): dispatch();
            (_, _, 1, _, _, _, _, _, _, _, _, _, _, _): stay();
            // Copies only of what may be an Initial, and only if it may travel on.
            (_, _, _, _, _, _, _, _, _, 0, 0, _, _, _): stay();
            (_, _, _, _, _, _, _, _, _, 0, _, true, 0 &&& 0xfe, _): stay();
            (_, _, _, _, _, _, _, _, _, 0, _, false, _, 0 &&& 0xfe): stay();
            (_, _, _, _, _, _, _, _, _, 0, _, _, _, _): stay_with_copies();
            (_, _, _, _, _, _, _, _, _, _, 0, _, _, _): steer(OUTCOME_STEERED_SITE, TARGET_MAPPING);
            (_, _, _, _, _, _, _, _, _, _, _, true, 0 &&& 0xfe, _): steer(OUTCOME_STEERED_SITE, TARGET_MAPPING);
            (_, _, _, _, _, _, _, _, _, _, _, false, _, 0 &&& 0xfe): steer(OUTCOME_STEERED_SITE, TARGET_MAPPING);
        }
        const default_action = steer_with_copies();
        size = 32;
    }

    // The number of the far end. The hash unit moves it, because an ALU would need the fields in the same group of containers.
    action use_origin() {
        IN_HASH { hdr.remote.remote_id[7:0] = hdr.gate.origin_site; }
    }

    action use_name() {
        IN_HASH { hdr.remote.remote_id[7:0] = sid_site_id; }
    }

    action use_mapping() {
        IN_HASH { hdr.remote.remote_id[7:0] = mapped_site; }
    }

    action use_slot() {
        IN_HASH { hdr.remote.remote_id[7:0] = 2w0 ++ hdr.fold.connection_hash[5:0]; }
    }

    apply {
        number = 0;
        is_service = 0;
        dispatched = 0;
        is_named = 0;
        sid_site_id = 0;
        mapped_site = 0;
        if (hdr.fold.direction == (bit<8>)Direction.UP && hdr.fold.is_check == 0 && hdr.fold.at_cookie_address == 0) {
            service.apply();
            deployment.apply();
        }
        if (hdr.gate.from_tunnel == 0) {
            if (!mapping.apply().hit) {
                default_mapping.apply();
            }
        }
        if (meta.candidate_found == 1) {
            sid_site.apply();
        }
        if (hdr.fold.is_check == 0) {
            decision.apply();
        }
        if (meta.target == TARGET_ORIGIN) {
            use_origin();
        } else if (meta.target == TARGET_NAME) {
            use_name();
        } else if (meta.target == TARGET_MAPPING) {
            use_mapping();
        } else if (meta.target == TARGET_SLOT) {
            use_slot();
        }
    }
}

control SiteEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
                   in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                   inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                   inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    Counter<bit<64>, bit<8>>(DROP_REASONS, CounterType_t.PACKETS_AND_BYTES) site_drops;

    TreeWorker() tree_worker;
    SiteArrival() arrival;
    @name("reading.retrieve") Retrieve() retrieve;
    SiteCandidate() candidate;
    @name("region") SiteRegion() region;
    @name("demand") SiteDemand() demand;
    @name("steering") SiteSteering() steering;

    action has_quic_cookie() {
        meta.has_quic_cookie = 1;
    }

    action copy() {
        eg_dprsr_md.mirror_type = MIRROR_COPY;
        eg_dprsr_md.mirror_io_select = 0; // the packet before this control changes it
        meta.mirror_kind = INTERNAL_COPY;
    }

    action read_flow() {
        IN_HASH { hdr.remote.flow = hdr.fold.connection_hash[15:0]; }
    }

    action read_origin() {
        IN_HASH { hdr.remote.origin_site = hdr.gate.origin_site; }
    }

    action read_local_site() {
        IN_HASH { hdr.remote.origin_site = meta.local_site; }
    }

    action route_only() {
        hdr.fold.direction = (bit<8>)Direction.TRANSIT;
    }

    action remove_remote() {
        hdr.remote.setInvalid();
    }

    apply {
        if (hdr.worker.isValid()) {
            tree_worker.apply(hdr.worker);
        } else if (hdr.queue.isValid()) {
            eg_dprsr_md.drop_ctl = 1;
        } else {
            arrival.apply(hdr, meta, eg_prsr_md.global_tstamp);
            retrieve.apply(hdr, meta);
            if (hdr.fold.is_named == 1 || hdr.fold.cookie_form == FORM_PLAIN_CID) {
                has_quic_cookie();
            }
            region.apply(hdr, meta);
            demand.apply(hdr, meta);
            candidate.apply(hdr, meta);
            steering.apply(hdr, meta);
            read_flow();
            if (hdr.gate.from_tunnel == 1) {
                read_origin();
            } else {
                read_local_site();
            }
            if (hdr.site.outcome != 0) {
                route_only();
            }
            if (hdr.remote.remote == 0) {
                remove_remote();
            }
            if (meta.clone_session != 0) {
                copy();
            }
            if (meta.verdict != VERDICT_CONTINUE) {
                site_drops.count(meta.verdict, SITE_EGRESS_BYTES);
                eg_dprsr_md.drop_ctl = 1;
            }
        }
    }
}

control SiteDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                     in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Mirror() copy_mirror;

    apply {
        if (eg_dprsr_md.mirror_type == MIRROR_COPY) {
            copy_mirror.emit<copy_t>((MirrorId_t)meta.clone_session,
                                     { meta.mirror_kind, meta.local_site, hdr.fold.connection_hash });
        }
        packet.emit(hdr);
    }
}

#endif
