// SPDX-License-Identifier: Apache-2.0
// Metadata of the compact pipeline alone (frontage.p4).
#ifndef FRONTAGE_TNA_COMPACT_METADATA_P4
#define FRONTAGE_TNA_COMPACT_METADATA_P4

// Kinds of requests to the switch itself (neighbor.p4).
const bit<8> REQUEST_ARP = 1;
const bit<8> REQUEST_NDP = 2;
const bit<8> REQUEST_ECHO4 = 3;
const bit<8> REQUEST_ECHO6 = 4;

#define PROFILE_METADATA \
    bit<1> is_martian; \
    bit<8> request; \
    mac_t other_mac;               /* the destination XOR the address of the port */ \
    bit<1> is_other_mac; \
    bit<1> is_unknown_port; \
    bit<1> is_malformed;           /* header_verdict precedes the check of the MAC address */ \
    bit<1> has_no_service;         /* to the address of a VIP */ \
    bit<1> has_no_policy; \
    bit<16> tcp_header_length; \
    bit<16> segment_length; \
    bit<16> missing_ipv4;          /* bytes that a header needs, beyond the length of the packet */ \
    bit<16> missing_tcp; \
    bit<8> n_af; \
    bit<8> n_ff; \
    bit<1> sealing_epoch; \
    bit<16> sealing_clock_offset; \
    bit<1> is_opened; \
    bit<1> is_sealed; \
    bit<16> report_score; \
    bit<8> report_parts;           /* how many of the two scores were found */ \
    bit<1> has_report;             /* a server's packet with loads */ \
    bit<1> uses_pool; \
    bit<16> pool_index; \
    bit<1> is_repeated;            /* the report is the server's last one */ \
    bit<32> filter_score; \
    bit<1> is_best;                /* the candidate is the best server of the tree */ \
    bit<1> is_member;              /* the candidate belongs to the VIP */

#endif
