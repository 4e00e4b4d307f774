// SPDX-License-Identifier: Apache-2.0
// The checks of a packet's headers. They do what control/validation.p4 and control/transport.p4 do, in tables that match
// many fields at once. The last table chooses the first reason in the order of other architectures.
#ifndef FRONTAGE_TNA_COMPACT_CHECKS_P4
#define FRONTAGE_TNA_COMPACT_CHECKS_P4

// Why the parser stopped early.
control ParseFailure(inout metadata_t meta, in bit<16> parser_error) {
    apply {
        if (meta.parse_failure == DROP_NONE && (parser_error & PARSER_ERROR_PARTIAL_HDR) != 0) {
            meta.parse_failure = DROP_TRUNCATED;
        }
    }
}

// Needs only parsed fields.
control Lengths(in headers_t hdr, inout metadata_t meta) {
    action read_lengths() {
        IN_HASH {
            meta.ipv4_header_length = 10w0 ++ hdr.ipv4.ihl ++ 2w0;
            meta.tcp_header_length = 10w0 ++ hdr.tcp.data_offset ++ 2w0;
        }
    }

    action compare_ipv4() {
        meta.missing_ipv4 = meta.ipv4_header_length |-| hdr.ipv4.total_length;
        meta.segment_length = hdr.ipv4.total_length - meta.ipv4_header_length;
    }

    action compare_ipv6() {
        meta.segment_length = hdr.ipv6.payload_length;
    }

    action compare_extended(bit<16> difference) {
        meta.segment_length = hdr.ipv6.payload_length + difference;
    }

    @hidden table segment_length {
        key = {
            hdr.ipv4.isValid(): ternary;
            hdr.ipv6_extensions[0].isValid(): ternary;
            hdr.ipv6_extensions[1].isValid(): ternary;
        }
        actions = { compare_ipv4; compare_ipv6; compare_extended; }
        const entries = {
            (true, _, _): compare_ipv4();
            (_, _, true): compare_extended(0xfff0); // 16 bytes less
            (_, true, _): compare_extended(0xfff8); // 8 bytes less
        }
        const default_action = compare_ipv6();
        size = 4;
    }

    action compare_tcp() {
        meta.missing_tcp = meta.tcp_header_length |-| meta.segment_length;
    }

    apply {
        if (READS_LENGTHS_AT_ONCE || meta.direction != Direction.WORKER) { // later than the lookups of addresses, which need the hash unit, too
            read_lengths();
        }
        segment_length.apply();
        compare_tcp();
    }
}

// Role of the ingress port, as in control/ports.p4.
control Ports(inout metadata_t meta, in port_t ingress_port) {
    action set_port(bit<8> role, mac_t mac) {
        meta.role = role;
        meta.port_mac = mac;
    }

    action unknown_port() {
        meta.is_unknown_port = 1;
    }

    @stage(1) table port {
        key = { ingress_port: exact @name("ingress_port"); }
        actions = { set_port; unknown_port; }
        const default_action = unknown_port();
        size = PORTS;
    }

    apply {
        port.apply();
    }
}

// The kind of a TCP segment.
control Segments(in headers_t hdr, inout metadata_t meta) {
    action set_kind(bit<1> is_new_connection, bit<1> can_carry_cookie, bit<1> has_report) {
        meta.is_new_connection = is_new_connection;
        meta.can_carry_cookie = can_carry_cookie;
        meta.has_report = has_report;
#ifndef ONE_PROTOCOL
        meta.has_tcp_report = has_report;
#endif
    }

    @hidden table segment {
        key = {
            hdr.tcp.isValid(): ternary;
            hdr.tcp.flags: ternary;
            hdr.tcp_timestamp.isValid(): ternary;
            hdr.tcp.ck: ternary;
        }
        actions = { set_kind; NoAction; }
        const entries = {
            (false, _, _, _): NoAction();
            (_, 0x02 &&& 0x12, false, _): set_kind(1, 0, 0); // SYN without ACK
            (_, 0x02 &&& 0x12, true, 0): set_kind(1, 1, 0);
            (_, 0x02 &&& 0x12, true, 1): set_kind(1, 1, 1);
            (_, _, true, 0): set_kind(0, 1, 0);
            (_, _, true, 1): set_kind(0, 1, 1);
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        segment.apply();
    }
}

// Martian sources. It runs before the source of a server's packet becomes the VIP.
control Sources(in headers_t hdr, inout metadata_t meta) {
    action martian() {
        meta.is_martian = 1;
    }

    action unspecified() {
        meta.has_no_source = 1;
    }

    @hidden table source {
        key = {
            hdr.ipv4.isValid(): ternary;
            hdr.ipv4.src[31:24]: ternary;
            hdr.ipv6.isValid(): ternary;
            hdr.ipv6.src: ternary;
        }
        actions = { martian; unspecified; NoAction; }
        const entries = {
            (true, 0, _, _): martian();
            (true, 127, _, _): martian();
            (true, 0xe0 &&& 0xe0, _, _): martian();
            (false, _, true, 0): unspecified();
            (false, _, true, 1): martian();
            (false, _, true, 0xff000000000000000000000000000000 &&& 0xff000000000000000000000000000000): martian();
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        source.apply();
    }
}

control HeaderChecks(in headers_t hdr, inout metadata_t meta) {
    action compare_macs() {
        meta.other_mac = hdr.ethernet.dst ^ meta.port_mac;
    }

    action other_mac() {
        meta.is_other_mac = 1;
    }

    @hidden table local_mac {
        key = { meta.other_mac: ternary; }
        actions = { other_mac; NoAction; }
        const entries = {
            0x010000000000 &&& 0x010000000000: NoAction(); // multicast, because the port's address is not
            0: NoAction();
        }
        const default_action = other_mac();
        size = 4;
    }

    action malformed(bit<8> reason) {
        meta.is_malformed = 1;
        meta.header_verdict = reason;
    }

    action drop(bit<8> reason) {
        meta.header_verdict = reason;
    }

    @hidden table headers {
        key = {
            meta.parse_failure: ternary;
            hdr.ipv4.isValid(): ternary;
            hdr.ipv6.isValid(): ternary;
            hdr.arp.isValid(): ternary;
            hdr.ndp.isValid(): ternary;
            hdr.ipv4.version: ternary;
            hdr.ipv4.ihl: ternary;
            meta.missing_ipv4: ternary;
            meta.bad_ipv4_checksum: ternary;
            hdr.ipv6.version: ternary;
            meta.is_martian: ternary;
            meta.has_no_source: ternary;
        }
        actions = { malformed; drop; NoAction; }
        const entries = {
            (DROP_IPV4_HEADER, _, _, _, _, _, _, _, _, _, _, _): malformed(DROP_IPV4_HEADER);
            (DROP_TRUNCATED, false, false, false, _, _, _, _, _, _, _, _): malformed(DROP_TRUNCATED);
            (_, false, false, false, _, _, _, _, _, _, _, _): malformed(DROP_ETHERTYPE);
            (_, true, _, _, _, 4, 5, 0, 1, _, _, _): drop(DROP_IPV4_CHECKSUM);
            (_, true, _, _, _, 4, _, 0, _, _, 1, _): drop(DROP_MARTIAN_SOURCE);
            (_, true, _, _, _, 4, _, 0, _, _, _, _): NoAction();
            (_, true, _, _, _, _, _, _, _, _, _, _): drop(DROP_IPV4_HEADER);
            (_, _, true, _, _, _, _, _, _, 6, 1, _): drop(DROP_MARTIAN_SOURCE);
            (_, _, true, _, false, _, _, _, _, 6, _, 1): drop(DROP_MARTIAN_SOURCE);
            (_, _, true, _, _, _, _, _, _, 6, _, _): NoAction();
            (_, _, true, _, _, _, _, _, _, _, _, _): drop(DROP_IPV6_HEADER);
        }
        const default_action = NoAction();
        size = 16;
    }

    apply {
        compare_macs();
        local_mac.apply();
        headers.apply();
    }
}

// The verdict of all checks.
control Verdict(in headers_t hdr, inout metadata_t meta) {
    action drop(bit<8> reason) {
        meta.verdict = reason;
    }

    action use_header_verdict() {
        meta.verdict = meta.header_verdict;
    }

    action use_neighbor_verdict() {
        meta.verdict = meta.neighbor_verdict;
    }

    action use_parse_failure() {
        meta.verdict = meta.parse_failure;
    }

    @hidden table first_reason {
        key = {
            meta.direction: ternary;
            meta.is_unknown_port: ternary;
            meta.is_malformed: ternary;
            meta.is_other_mac: ternary;
            meta.header_verdict: ternary;
            meta.neighbor_verdict: ternary;
            meta.has_no_service: ternary;
            meta.is_fragment: ternary;
            hdr.udp.isValid(): ternary;
            meta.parse_failure: ternary;
            meta.missing_tcp: ternary;
            hdr.tcp.flags: ternary;
            meta.role: ternary;
            meta.has_no_policy: ternary;
        }
        actions = { drop; use_header_verdict; use_neighbor_verdict; use_parse_failure; NoAction; }
        const entries = {
            (Direction.CONTROLLER, _, _, _, _, _, _, _, _, _, _, _, _, _): NoAction();
            (Direction.WORKER, _, _, _, _, _, _, _, _, _, _, _, _, _): NoAction();
            (_, 1, _, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_PORT_UNKNOWN);
            (_, _, 1, _, _, _, _, _, _, _, _, _, _, _): use_header_verdict();
            (_, _, _, 1, _, _, _, _, _, _, _, _, _, _): drop(DROP_NOT_LOCAL_MAC);
            // to the address of a VIP
            (Direction.TRANSIT, _, _, _, 0, 0, 1, 1, _, _, _, _, _, _): drop(DROP_VIP_FRAGMENT);
            (Direction.TRANSIT, _, _, _, 0, 0, 1, _, _, 0, _, _, _, _): drop(DROP_VIP_NO_SERVICE);
            (Direction.TRANSIT, _, _, _, 0, 0, 1, _, true, _, _, _, _, _): drop(DROP_VIP_NO_SERVICE);
            (Direction.TRANSIT, _, _, _, 0, 0, 1, _, _, _, _, _, _, _): use_parse_failure();
            // from a client
#ifndef ONE_PROTOCOL
            (Direction.UP, _, _, _, 0, 0, _, _, true, 0, _, _, _, 1): drop(DROP_VIP_NO_SERVER);
            (Direction.UP, _, _, _, 0, 0, _, _, true, 0, _, _, _, _): NoAction();
#endif
            (Direction.UP, _, _, _, 0, 0, _, _, _, 0, 0, 0x00 &&& 0x17, _, _): drop(DROP_TCP_FLAGS);
            (Direction.UP, _, _, _, 0, 0, _, _, _, 0, 0, 0x03 &&& 0x03, _, _): drop(DROP_TCP_FLAGS);
            (Direction.UP, _, _, _, 0, 0, _, _, _, 0, 0, 0x06 &&& 0x06, _, _): drop(DROP_TCP_FLAGS);
            (Direction.UP, _, _, _, 0, 0, _, _, _, 0, 0, _, _, 1): drop(DROP_VIP_NO_SERVER);
            (Direction.UP, _, _, _, 0, 0, _, _, _, 0, 0, _, _, _): NoAction();
            (Direction.UP, _, _, _, 0, 0, _, _, _, 0, _, _, _, _): drop(DROP_TCP_HEADER);
            (Direction.UP, _, _, _, 0, 0, _, _, _, _, _, _, _, _): use_parse_failure();
            // from a server
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, 0, _, _, ROLE_SERVER, 1): drop(DROP_VIP_NO_SERVER);
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, 0, _, _, ROLE_REAL_SERVER, 1): drop(DROP_VIP_NO_SERVER);
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, 0, _, _, ROLE_SERVER, _): NoAction();
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, 0, _, _, ROLE_REAL_SERVER, _): NoAction();
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, 0, _, _, _, _): drop(DROP_SPOOFED_SOURCE);
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, _, _, _, _, _): use_parse_failure();

            (_, _, _, _, 0, _, _, _, _, _, _, _, _, _): use_neighbor_verdict();
        }
        const default_action = use_header_verdict();
        size = 32;
    }

    apply {
        first_reason.apply();
    }
}

#endif
