// SPDX-License-Identifier: Apache-2.0
// The checks of a datagram, as in control/transport.p4, and the verdict of all checks.
#ifndef FRONTAGE_TNA_COMPACT_QUIC_CHECKS_P4
#define FRONTAGE_TNA_COMPACT_QUIC_CHECKS_P4

// The parser of this profile has no unit to verify the IPv4 checksum. The residue without all fields is zero if it is right.
control Ipv4Residue(inout metadata_t meta) {
    action bad_checksum() {
        meta.bad_ipv4_checksum = 1;
    }

    @hidden table residue {
        key = { meta.ipv4_residue: ternary; }
        actions = { bad_checksum; NoAction; }
        const entries = {
            0: NoAction();
            0xffff: NoAction(); // the other zero of the one's complement
        }
        const default_action = bad_checksum();
        size = 2;
    }

    apply {
        residue.apply();
    }
}

control Datagrams(in headers_t hdr, inout metadata_t meta) {
    action read_long_header() {
        IN_HASH { meta.quic_header_length = 8w0 ++ hdr.quic_long.dcid_length; }
    }

    // 8 bytes of UDP, and the long header up to and including the length of the source connection id.
    action add_fixed_length() {
        meta.quic_header_length = meta.quic_header_length + 15;
    }

    action set_short_header_length() {
        meta.quic_header_length = 18;
    }

    action compare_datagram() {
        meta.missing_udp = 8 |-| hdr.udp.length;
        meta.initial_space = (8 + QUIC_INITIAL) |-| hdr.udp.length;
    }

    action compare_lengths() {
        meta.excess = hdr.udp.length |-| meta.segment_length;
        meta.missing_quic = meta.quic_header_length |-| hdr.udp.length;
    }

    @hidden table header_length {
        key = { hdr.quic_long.isValid(): exact; }
        actions = { add_fixed_length; set_short_header_length; }
        const entries = { true: add_fixed_length(); }
        const default_action = set_short_header_length();
        size = 2;
    }

    apply {
        compare_datagram();
        read_long_header();
        header_length.apply();
        if (hdr.quic_long.isValid() && meta.initial_space == 0) {
            meta.may_hold_initial = 1;
        }
        compare_lengths();
    }
}

// The verdict of all checks: the first reason in the order of other architectures.
control DatagramVerdict(in headers_t hdr, inout metadata_t meta) {
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
            meta.parse_failure: ternary;
            hdr.udp.isValid(): ternary;
            hdr.ipv6.isValid(): ternary;
            hdr.udp.checksum: ternary;
            meta.missing_udp: ternary;
            meta.excess: ternary;
            meta.missing_quic: ternary;
            meta.role: ternary;
            meta.has_no_policy: ternary;
        }
        actions = { drop; use_header_verdict; use_neighbor_verdict; use_parse_failure; NoAction; }
        const entries = {
            (Direction.CONTROLLER, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _): NoAction();
            (Direction.WORKER, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _): NoAction();
            (_, 1, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_PORT_UNKNOWN);
            (_, _, 1, _, _, _, _, _, _, _, _, _, _, _, _, _, _): use_header_verdict();
            (_, _, _, 1, _, _, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_NOT_LOCAL_MAC);
            // to the address of a VIP, or with a cookie prefix
            (Direction.TRANSIT, _, _, _, 0, 0, 1, 1, _, _, _, _, _, _, _, _, _): drop(DROP_VIP_FRAGMENT);
            (Direction.TRANSIT, _, _, _, 0, 0, 1, _, 0, _, _, _, _, _, _, _, _): drop(DROP_VIP_NO_SERVICE);
            (Direction.TRANSIT, _, _, _, 0, 0, 1, _, _, true, _, _, _, _, _, _, _): drop(DROP_VIP_NO_SERVICE);
            (Direction.TRANSIT, _, _, _, 0, 0, 1, _, _, _, _, _, _, _, _, _, _): use_parse_failure();
            // from a client
            (Direction.UP, _, _, _, 0, 0, _, _, _, _, true, 0, 0, 0, _, _, _): drop(DROP_UDP_CHECKSUM);
            (Direction.UP, _, _, _, 0, 0, _, _, _, _, _, _, 0, 0, 0, _, 1): drop(DROP_VIP_NO_SERVER);
            (Direction.UP, _, _, _, 0, 0, _, _, _, _, _, _, 0, 0, 0, _, _): NoAction();
            (Direction.UP, _, _, _, 0, 0, _, _, _, _, _, _, 0, 0, _, _, _): drop(DROP_QUIC_HEADER);
            (Direction.UP, _, _, _, 0, 0, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_UDP_HEADER);
            // from a server
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, _, true, 0, 0, 0, _, _, _): drop(DROP_UDP_CHECKSUM);
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, _, _, _, 0, 0, 0, ROLE_SERVER, 1): drop(DROP_VIP_NO_SERVER);
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, _, _, _, 0, 0, 0, ROLE_REAL_SERVER, 1): drop(DROP_VIP_NO_SERVER);
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, _, _, _, 0, 0, 0, ROLE_SERVER, _): NoAction();
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, _, _, _, 0, 0, 0, ROLE_REAL_SERVER, _): NoAction();
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, _, _, _, 0, 0, 0, _, _): drop(DROP_SPOOFED_SOURCE);
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, _, _, _, 0, 0, _, _, _): drop(DROP_QUIC_HEADER);
            (Direction.DOWN, _, _, _, 0, 0, _, _, _, _, _, _, _, _, _, _, _): drop(DROP_UDP_HEADER);

            (_, _, _, _, 0, _, _, _, _, _, _, _, _, _, _, _, _): use_neighbor_verdict();
        }
        const default_action = use_header_verdict();
        size = 32;
    }

    apply {
        first_reason.apply();
    }
}

#endif
