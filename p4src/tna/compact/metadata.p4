// SPDX-License-Identifier: Apache-2.0
// Metadata of the compact pipeline alone (frontage.p4).
#ifndef FRONTAGE_TNA_COMPACT_METADATA_P4
#define FRONTAGE_TNA_COMPACT_METADATA_P4

// Kinds of requests to the switch itself (neighbor.p4).
const bit<8> REQUEST_ARP = 1;
const bit<8> REQUEST_NDP = 2;
const bit<8> REQUEST_ECHO4 = 3;
const bit<8> REQUEST_ECHO6 = 4;

// Without it, the pipeline serves TCP and QUIC.
#if defined(WITHOUT_QUIC) || defined(WITHOUT_TCP)
#define ONE_PROTOCOL
#endif

// The stage of a table that other tables push to a later stage on Tofino 2. The back end counts a table elsewhere as a failure,
// and continues with less room.
#ifdef ONE_PROTOCOL
#define STAGE_OF_TOFINO1(number) @stage(number)
#else
#define STAGE_OF_TOFINO1(number)
#endif

#ifndef WITHOUT_QUIC
// The outputs of one round of the cipher, for each byte of its input (control/cookie6.p4).
struct round_t {
    bit<32> output0;
    bit<32> output1;
    bit<32> output2;
    bit<32> output3;
}

#define CIPHER_METADATA \
    bit<1> is_keyed;               /* a key is installed for the epoch of cookie_word */ \
    round_t round0; \
    round_t round1; \
    round_t round2; \
    round_t round3;
#endif

#ifdef ONE_PROTOCOL
#define IS_TCP true
#define HAS_SERVICE_PORTS hdr.tcp.isValid()
#define READS_LENGTHS_AT_ONCE false
#define HAS_TCP_REPORT (meta.has_report == 1)
#define IS_NAMED false
#define QUIC_METADATA
#else
#define IS_TCP hdr.tcp.isValid()
#define HAS_TCP_REPORT (meta.has_tcp_report == 1)
#define IS_NAMED (meta.is_named == 1)
#define READS_LENGTHS_AT_ONCE true
#define HAS_SERVICE_PORTS (hdr.tcp.isValid() || hdr.udp.isValid())

// Forms of the word that may contain the cookie of a QUIC packet (unseal.p4)
const bit<8> FORM_NONE = 0;
const bit<8> FORM_PLAIN_CID = 1;
const bit<8> FORM_SEALED_CID = 2;
const bit<8> FORM_INTERFACE_ID = 3; // of a cookie address
const bit<8> FORM_DIP = 4;          // the server sends from its own address

#define QUIC_METADATA \
    bit<8> cookie_form; \
    bit<32> opened_left; \
    bit<32> opened_right; \
    CIPHER_METADATA \
    bit<1> is_named;               /* the cookie of QUIC names the candidate */ \
    bit<1> is_sealed_cid; \
    bit<1> has_tcp_report;         /* has_report of TCP only, which is known earlier */ \
    bit<8> found_handshake;        /* JOIN_OWN: known */ \
    bit<8> joined_handshake;       /* JOIN_*, of a packet that may begin a handshake */
#endif

#ifdef WITHOUT_RECENT
#define RECENT_METADATA
#else
#define RECENT_METADATA \
    bit<8> recent_op; \
    bit<32> recent_entry;          /* what a server writes: a bit that is set, and its SID */ \
    bit<32> recent_result;         /* what a client reads */ \
    bit<1> uses_recent;            /* the candidate is the server that sent last */
#endif

#ifdef WITHOUT_LEARNING
#define LEARNING_METADATA
#else
#define LEARNING_METADATA \
    bit<1> has_source_option;      /* a solicitation has its sender's Ethernet address */
#endif

#ifndef FOLDED
#define QUIC_VERDICT verdict
#define IS_REFUSED false
#define FOLDED_METADATA
#endif

#define COMPACT_METADATA \
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
    bit<1> is_member;              /* the candidate belongs to the VIP */ \
    QUIC_METADATA \
    RECENT_METADATA \
    LEARNING_METADATA \
    FOLDED_METADATA

#ifndef PROFILE_METADATA
#define PROFILE_METADATA COMPACT_METADATA
#endif

#endif
