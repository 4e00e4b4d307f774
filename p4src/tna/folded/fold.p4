// SPDX-License-Identifier: Apache-2.0
// The fold: a packet passes the ingress of the edge, in an even pipe, and then the ingress of the core, in the odd pipe behind it.
// Port 128 + p, which is in loopback, belongs to port p alone, so it has the bandwidth of that port.
#ifndef FRONTAGE_TNA_FOLDED_FOLD_P4
#define FRONTAGE_TNA_FOLDED_FOLD_P4

// The bit of a port number that is set if the port is in a pipe of the core.
#define INNER_PORT 0x80

// The results of the edge, in front of the packet.
header fold_t {
    bit<8> kind;
    bit<8> direction;
    bit<16> vip_id;
    bit<32> connection_hash;
    bit<16> connection_index;
    bit<16> sid;            // of a server's packet
    bit<16> slot;           // of this server
    bit<8> score_class;     // of this server
    bit<8> cookie_form;     // of a client's datagram
    bit<8> n_af;            // in the cookie of a server's datagram
    bit<8> n_ff;
    bit<16> candidate_sid;  // of a client's packet: the check or the cookie of QUIC names it
    bit<1> candidate_found;
    bit<1> is_check;
    bit<1> is_named;
    bit<1> is_sealed_cid;
    bit<1> at_cookie_address;
    bit<1> may_hold_initial;
    bit<1> active;          // the server
    bit<1> has_report;      // a server's datagram
    bit<6> reserved;
    bit<1> is_refused;      // a server refused the packet of a client
    bit<1> from_real_server;
}

#define FOLD_HEADER fold_t fold;
#define FOLD_BYTES 22

// Where checks of QUIC's cookies write their verdict. Limits come before it.
#define QUIC_VERDICT cookie_verdict

// True for a packet that a server sent back.
#define IS_REFUSED (meta.is_refused == 1)

#define FOLDED_METADATA \
    bit<1> is_limited;                 /* limits concern the packet */ \
    bit<1> may_open;                   /* begins a connection, unless a cookie names its server */ \
    bit<8> client_connections_color;   /* of the meters: zero is green, which is within the limit */ \
    bit<8> connections_color; \
    bit<8> client_bytes_color; \
    bit<8> bytes_color; \
    bit<1> is_refused_by_limit; \
    bit<1> is_allowed_sender;          /* a real server may send for this server from this port */

#endif
