// SPDX-License-Identifier: Apache-2.0
// The fold: a packet passes the ingress of the edge, and then the ingress of the core, in the next pipe.
// Port CORE_PORT + p, which is in loopback, belongs to port p alone, so it has the bandwidth of that port. The same holds for the
// other pipes.
#ifndef FRONTAGE_TNA_FOLDED_FOLD_P4
#define FRONTAGE_TNA_FOLDED_FOLD_P4

// The first ports of the pipes
#ifdef FOUR_PIPES
#define EDGE_PORT 0x80
#define CORE_PORT 0x100
#define SCHEDULING_PORT 0x180
#define PORT_MASK 0x7f // the number of a port within its pipe
#else
#define CORE_PORT 0x80
#endif

#ifdef FOUR_PIPES
#define FOLD_RANK \
    bit<8> rank; \
    bit<7> reserved2; \
    bit<1> has_rank;
#define FOLD_RANK_ALIAS(pipe) \
    @pa_alias(pipe, "ingress", "hdr.fold.rank", "meta.cookie_rank") \
    @pa_alias(pipe, "ingress", "hdr.fold.has_rank", "meta.has_cookie_rank")
#define FOLD_BYTES 24
#else
#define FOLD_RANK
#define FOLD_RANK_ALIAS(pipe)
#define FOLD_BYTES 22
#endif

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
    FOLD_RANK
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

#ifdef FOUR_PIPES
// Port of the next pipe, once the core has chosen the port by which the packet leaves
#define TO_PORT(port) (port) | SCHEDULING_PORT

// From the core to the schedulers, in front of the header for egress.
header scheduled_t {
    bit<8> kind;
    bit<8> rank;
    bit<7> reserved;
    bit<1> has_rank;
}

const bit<32> SCHEDULED_BYTES = 3 + 13;

// A packet that only changes the schedulers' registers of a port (control/scheduler.p4).
header queue_t {
    bit<8> kind;
    bit<8> bound_decrement;
    bit<7> reserved;
    bit<9> egress_port;
    bit<13> reserved2;
    bit<19> depth_after;
}

#define SCHEDULING_HEADERS \
    scheduled_t scheduled; \
    queue_t queue;
#else
#define TO_PORT(port) (port)
#endif

#define FOLD_HEADER fold_t fold;

#ifdef FOUR_PIPES
// From the gate, in front of the packet. The edge and the core do not change it.
header gate_t {
    bit<8> kind;
    bit<4> reserved;
    bit<1> from_tunnel;
    bit<1> is_response; // RESPONSE (include/metadata.p4)
    bit<1> to_site;     // a response to the site `origin_site`
    bit<9> ingress_port;
    bit<8> origin_site;
}

const bit<32> GATE_BYTES = 4;

// From the gate to the egress of the edge, behind gate_t: what it compares with a packet from a tunnel.
header tunnel_t {
    bit<16> source_set;
    bit<16> inner_length;
}

// From the egress of the core to its ingress, in front of gate_t and fold_t.
header site_t {
    bit<8> kind;
    bit<8> outcome;       // of a packet that needs no server here; 0: none
    bit<6> reserved;
    bit<1> has_cookie;    // candidate_sid of fold_t is the server in TCP's cookie
    bit<1> has_new_client;
}

const bit<32> SITE_BYTES = 3;

// From the core to the egress of the scheduling pipe, in front of a packet that needs the outer headers of a tunnel.
header remote_t {
    bit<8> kind;
    bit<8> remote;        // the far end (Remote)
    bit<16> remote_id;
    bit<8> origin_site;
    bit<16> flow;         // part of the hash of the connection
}

const bit<32> REMOTE_BYTES = 7;

// Behind site_t: a client without a region (new_client_t).
header client_t {
    bit<8> version;
    bit<48> prefix;
}

#define STEERING_HEADERS \
    remote_t remote; \
    site_t site; \
    client_t new_client; \
    gate_t gate; \
    tunnel_t tunnel;

// Bytes in front of a packet that counters exclude: in the ingress of the edge, in the egress of the core, in its ingress
#define EDGE_BYTES GATE_BYTES
#define SITE_EGRESS_BYTES GATE_BYTES + FOLD_BYTES
#define TUNNEL_EGRESS_BYTES REMOTE_BYTES + SCHEDULED_BYTES
#define CORE_BYTES SITE_BYTES + GATE_BYTES + FOLD_BYTES
#else
#define EDGE_BYTES 0
#define CORE_BYTES FOLD_BYTES
#endif

// Metadata that the back end keeps in the containers of the header, because two copies need too many containers. It then has
// nothing to do where the edge writes the header and the core reads it.
#define FOLD_ALIASES(pipe) \
    FOLD_RANK_ALIAS(pipe) \
    @pa_alias(pipe, "ingress", "hdr.fold.direction", "meta.direction") \
    @pa_alias(pipe, "ingress", "hdr.fold.vip_id", "meta.vip_id") \
    @pa_alias(pipe, "ingress", "hdr.fold.connection_hash", "meta.connection_hash") \
    @pa_alias(pipe, "ingress", "hdr.fold.connection_index", "meta.connection.index") \
    @pa_alias(pipe, "ingress", "hdr.fold.sid", "meta.sid") \
    @pa_alias(pipe, "ingress", "hdr.fold.slot", "meta.slot") \
    @pa_alias(pipe, "ingress", "hdr.fold.score_class", "meta.score_class") \
    @pa_alias(pipe, "ingress", "hdr.fold.cookie_form", "meta.cookie_form") \
    @pa_alias(pipe, "ingress", "hdr.fold.n_af", "meta.n_af") \
    @pa_alias(pipe, "ingress", "hdr.fold.n_ff", "meta.n_ff") \
    @pa_alias(pipe, "ingress", "hdr.fold.candidate_sid", "meta.candidate_sid") \
    @pa_alias(pipe, "ingress", "hdr.fold.candidate_found", "meta.candidate_found") \
    @pa_alias(pipe, "ingress", "hdr.fold.is_check", "meta.is_check") \
    @pa_alias(pipe, "ingress", "hdr.fold.is_named", "meta.is_named") \
    @pa_alias(pipe, "ingress", "hdr.fold.is_sealed_cid", "meta.is_sealed_cid") \
    @pa_alias(pipe, "ingress", "hdr.fold.at_cookie_address", "meta.at_cookie_address") \
    @pa_alias(pipe, "ingress", "hdr.fold.may_hold_initial", "meta.may_hold_initial") \
    @pa_alias(pipe, "ingress", "hdr.fold.active", "meta.active") \
    @pa_alias(pipe, "ingress", "hdr.fold.has_report", "meta.has_report") \
    @pa_alias(pipe, "ingress", "hdr.fold.is_refused", "meta.is_refused") \
    @pa_alias(pipe, "ingress", "hdr.fold.from_real_server", "meta.from_real_server")

// Where checks of QUIC's cookies write their verdict. Limits come before it.
#define QUIC_VERDICT cookie_verdict

// True for a packet that a server sent back.
#define IS_REFUSED (meta.is_refused == 1)

#ifdef FOUR_PIPES
// In the egress of the core
#define STEERING_METADATA \
    bit<1> has_timestamp;              /* of TCP */ \
    bit<16> cookie_code;               /* the lower half of TSecr */ \
    bit<16> cookie_sid;                /* the SID in it */ \
    bit<1> has_long_header;            /* of QUIC */ \
    bit<1> has_quic_cookie;            /* that names a server */ \
    bit<16> named_sid;                 /* by a connection id in plaintext */ \
    bit<32> sequence;                  /* of TCP, or a part of the connection id */ \
    bit<1> names_no_server; \
    bit<8> local_site; \
    bit<8> target;                     /* TARGET_* */
#else
#define STEERING_METADATA
#endif

#define FOLDED_METADATA \
    bit<1> is_limited;                 /* limits concern the packet */ \
    bit<1> may_open;                   /* begins a connection, unless a cookie names its server */ \
    bit<8> client_connections_color;   /* of the meters: zero is green, which is within the limit */ \
    bit<8> connections_color; \
    bit<8> client_bytes_color; \
    bit<8> bytes_color; \
    bit<1> is_refused_by_limit; \
    bit<1> is_allowed_sender;          /* a real server may send for this server from this port */ \
    STEERING_METADATA

#endif
