// SPDX-License-Identifier: Apache-2.0
// Metadata of one packet, and the constants and enumerations that the controls share.
#ifndef FRONTAGE_METADATA_P4
#define FRONTAGE_METADATA_P4

typedef bit<9> port_t;
typedef bit<16> sid_t;
typedef bit<16> vip_id_t;
typedef bit<19> depth_t; // of a queue, in packets

// Verdict of ingress on the packet: one of these values, or a reason DROP_* (include/drop.p4) for which it is dropped.
// A stage runs only while the verdict is VERDICT_CONTINUE.
const bit<8> VERDICT_CONTINUE = DROP_NONE;
const bit<8> VERDICT_REPLY = 0xfd;    // the switch answers the sender itself: skip the stages before the scheduler
const bit<8> VERDICT_RESUBMIT = 0xfe; // a second pass through ingress follows
const bit<8> VERDICT_CONSUME = 0xff;  // the switch itself was the receiver: the packet ends here, which is not a drop

// Role of a port: the side of the switch that it leads to (control/ports.p4).
const bit<8> ROLE_CLIENT = 1;
const bit<8> ROLE_SERVER = 2;
// Role 3, ports to other sites, is only a key of the tunnel tables: no code compares it.
const bit<8> ROLE_REAL_SERVER = 4;

const bit<8> POLICY_HASH = 1;
const bit<8> POLICY_CHEETAH_RR = 2;
const bit<8> POLICY_CHEETAH_LL = 3;
const bit<8> POLICY_CCLB4 = 4; // cclb4-current and cclb4-future: a = 1 and a = 0 in the score tables

enum bit<8> Direction {
    TRANSIT = 0,    // not a packet of a VIP
    UP = 1,         // client to VIP
    DOWN = 2,       // server to client
    CONTROLLER = 3, // an operation from the controller, consumed in ingress
    WORKER = 4,     // a queue report from egress, consumed in ingress
    RESPONSE = 5    // replica to client through tunnels: its source already is the service address
}

const bit<8> TREE_NONE = 0;
const bit<8> TREE_SET = 1;   // store the score that the server reports
const bit<8> TREE_ADD = 2;   // a connection was assigned to the server: counts until its next report
const bit<8> TREE_SUB = 3;   // a connection of the server ended (cheetah-ll)
const bit<8> TREE_SEED = 4;  // activate the server: score zero, unless it has one
const bit<8> TREE_CLEAR = 5; // deactivate the server: it gets no new connections
const bit<8> TREE_READ = 6;  // read the best server of the VIP

// The operation of a packet-out whose payload is a frame to send, not an operation on a tree.
const bit<8> PACKET_OUT_SEND = 7;

// Kinds of packets that say something about a neighbor (control/learning.p4).
const bit<8> NEIGHBOR_NONE = 0;
const bit<8> NEIGHBOR_ARP_REQUEST = 1;       // for an address of the switch
const bit<8> NEIGHBOR_ARP_REPLY = 2;
const bit<8> NEIGHBOR_ARP_ANNOUNCEMENT = 3;  // a request for the sender's own address (RFC 5227, 3)
const bit<8> NEIGHBOR_NDP_SOLICITATION = 4;  // for an address of the switch
const bit<8> NEIGHBOR_NDP_ADVERTISEMENT = 5; // in reply to a solicitation
const bit<8> NEIGHBOR_NDP_UNSOLICITED = 6;

// The sender of an ARP or neighbor discovery packet, as the packet names it.
struct sender_t {
    bit<8> kind;
    ipv6_t address; // an IPv4 address has 96 leading zeros
    mac_t mac;      // zero: an advertisement without the option that has it (RFC 4861, 4.4)
    mac_t source;   // of the frame
}

// A server's last report: whether it is active (1) | its headroom or one less (16). ADD, SUB and SEED make it unknown.
const bit<32> REPORT_INACTIVE = 0;
const bit<32> REPORT_UNKNOWN = 0x20000;

// One operation on the tournament tree, and its result (control/tree.p4).
struct tree_t {
    bit<8> op;
    bit<1> is_report;  // SET and CLEAR by a server, without effect if they repeat its last report
    bit<8> depth;      // of this VIP's tree: it has 2^depth slots
    bit<16> slot;      // the leaf; to read the root, any leaf of the VIP
    sid_t sid;
    bit<4> tie_break;  // decides between equal scores
    bit<16> score;     // SET: the score; ADD, SUB: the difference
    bit<32> best;      // headroom (16) | tie (4), zero with v1model | SID (12); no headroom: no server
}

const bit<8> CONNECTION_NONE = 0;
const bit<8> CONNECTION_LOOKUP = 1;
const bit<8> CONNECTION_CLAIM = 2;
const bit<8> CONNECTION_JOIN = 3;    // look up the entry of the same addresses and ports, or claim a missing one
const bit<8> CONNECTION_RELEASE = 4; // remove the entry of the same addresses and ports

// One operation on the connection table (control/fallback.p4) or the handshake table (control/handshake.p4).
struct connection_t {
    bit<8> op;
    bit<16> index;
    bit<32> fingerprint;
    sid_t sid;
    tick_t now;
    bit<16> timeout;     // in ticks, if it is configurable
    bit<1> refresh;      // LOOKUP: restart the entry's timeout
    bit<1> has_entry;    // LOOKUP: found; CLAIM: claimed; JOIN: found or claimed
    bit<1> is_new_entry; // CLAIM, JOIN: claimed
}

enum bit<8> QuicCookie {
    NONE = 0,
    STATIC = 1,
    DYNAMIC = 2,
    SEALED_CID = 3,
    PLAIN_CID = 4
}

// The halves of a TCP cookie in its cipher (control/cookie.p4), and the index of each round. A round changes one half, and
// the later indices that depend on it.
struct cookie_halves_t {
    bit<8> a;
    bit<8> b;
    bit<8> index0;
    bit<8> index1;
    bit<8> index2;
    bit<8> index3;
}

// The cookie of a QUIC packet, from an interface id or a connection id (control/unseal.p4).
struct quic_cookie_t {
    QuicCookie kind;
    bit<1> has_form; // the address or connection id looks like a cookie
    bit<1> epoch;
    sid_t sid;
    bit<8> rpt;
    bit<8> n_af;
    bit<8> n_ff;
    bit<1> x;
}

// The far end of the tunnel by which the packet leaves (control/encapsulation.p4).
enum bit<8> Remote {
    NONE = 0,
    SITE = 1,       // id: the site's
    DISPATCHER = 2, // id: a slot of the connection hash
    REPLICA = 3,    // id: the SID
    SERVER = 4      // id: the SID of a remote server
}

// The last three are for remote servers only.
enum bit<8> Encapsulated {
    VXLAN = 1,
    GRE = 2,         // with a key
    GENEVE = 3,
    GRE_KEYLESS = 4,
    IP = 5           // IP in IP
}

enum bit<8> Discipline {
    NONE = 0, // no entry for the port: FIFO
    FIFO = 1,
    AIFO = 2,
    SP_PIFO = 3
}

// Parameters and state of one admission (control/aifo.p4).
struct aifo_t {
    bit<8> window;           // its length
    bit<16> sample_interval; // one packet in this many enters the window
    depth_t capacity;        // of the queue
    bit<8> slot;             // of the window, in which this packet's rank is stored
    bit<8> smaller_ranks;    // how many ranks in the window are smaller than the packet's
    depth_t limit;           // the largest queue depth at which the packet is admitted
}

const bit<8> AIFO_NO_SLOT = 0xff;
const bit<8> SP_PIFO_MOST_URGENT = 7;

// Fields that a resubmitted packet keeps.
#define RESUBMIT_FIELDS 1
// Fields that a worker packet brings to ingress (worker.p4).
#define WORKER_FIELDS 2
// Fields that a copy of a first flight brings to egress (control/copies.p4).
#define COPY_FIELDS 3

// Fields that a sample carries to egress (control/samples.p4).
#define SAMPLE_FIELDS 4

// Kinds of samples.
const bit<8> SAMPLE_NONE = 0;
const bit<8> SAMPLE_FLOW = 1;     // a forwarded packet, as it arrived
const bit<8> SAMPLE_DROP = 2;     // a dropped packet
const bit<8> SAMPLE_POSTCARD = 3; // a packet as it leaves, with its latency and queue depth

#ifdef WITHOUT_SAMPLES
#define SAMPLE_METADATA
#else
// sample_threshold: packets whose hash is below it are sampled. takes_postcards: sampled packets also cause a postcard.
#define SAMPLE_METADATA \
    bit<32> sample_threshold; \
    bit<1> takes_postcards; \
    @field_list(SAMPLE_FIELDS) \
    bit<8> sample_kind; \
    @field_list(SAMPLE_FIELDS) \
    bit<32> sample_pool; \
    @field_list(SAMPLE_FIELDS) \
    bit<32> hop_latency; \
    @field_list(SAMPLE_FIELDS) \
    depth_t queue_depth;
#endif

// State of a VIP's defence against SYN floods (control/syn_defence.p4).
const bit<2> SYN_UNDEFENDED = 0;
const bit<2> SYN_WATCHED = 1;
const bit<2> SYN_ANSWERED = 2;

const bit<4> SYN_NO_WINDOW_SCALE = 0xf;
// Window scale that the switch offers in a server's place; the agent sets the same one.
const bit<4> SYN_WINDOW_SCALE = 7;

struct syn_t {
    bit<2> mode;
    bit<1> answers;       // the switch answers this SYN
    bit<1> is_only_switch; // no other switch serves the VIP, so its connections without a cookie are in the connection table
    bit<1> completes;     // an acknowledgment with a valid cookie
    bit<1> counts;        // this acknowledgment begins the connection
    bit<6> head;          // epoch (1) | age (2) | MSS (3)
    bit<32> isn;
    bit<16> clock;        // of TSval, with the client's options
    bit<16> server_mss;
    // The client's options, from the parser
    bit<16> mss;
    bit<4> window_scale;
    bit<1> sack;
}

#ifdef WITHOUT_SYN_DEFENCE
#define ANSWERS_SYN false
#define COMPLETES_HANDSHAKE false
#define BEGINS_CONNECTION false
#define REFUSES_UNKNOWN false
#define SYN_METADATA
#else
#define ANSWERS_SYN (meta.syn.answers == 1)
#define COMPLETES_HANDSHAKE (meta.syn.completes == 1)
#define BEGINS_CONNECTION (meta.syn.completes == 1 && meta.syn.counts == 1)
// In a fleet, connections without a cookie may come from another switch.
#define REFUSES_UNKNOWN (meta.syn.mode == SYN_ANSWERED && meta.syn.completes == 0 \
    && (meta.syn.is_only_switch == 1 || meta.can_carry_cookie == 1))
#define SYN_METADATA syn_t syn;
#endif

// True for a health check and its answer (control/checker.p4).
#ifdef WITHOUT_CHECKER
#define IS_CHECK false
#define CHECKER_METADATA
#else
#define IS_CHECK (meta.is_check == 1)
#define CHECKER_METADATA bit<1> is_check;
#endif

// True for an ICMP error about a packet of a VIP, while the headers hold a reply to the quoted packet (control/icmp_errors.p4).
#ifdef WITHOUT_ICMP_ERRORS
#define IS_ERROR false
#define IS_BAD_QUOTE false
#define ICMP_ERROR_METADATA
#else
#define IS_ERROR (meta.is_error == 1)
#define IS_BAD_QUOTE (meta.is_bad_quote == 1)
#define ICMP_ERROR_METADATA \
    bit<1> is_error; \
    bit<1> is_bad_quote; \
    ipv6_t reporter; /* the source of the error; an IPv4 address has 96 leading zeros */
#endif

// Remote servers (control/remote_servers.p4). True for a packet in a tunnel of a remote server.
#ifdef WITHOUT_REMOTE_SERVERS
#define IS_FROM_SERVER_TUNNEL false
#define REMOTE_SERVERS_METADATA
#else
#define IS_FROM_SERVER_TUNNEL (meta.peer_is_server == 1)
// peer_is_server: the tunnel's other end is that of remote servers, and peer_source_set names it.
// max_mss: of the connection's tunnel; 0: no limit.
// excerpt_bytes: of the transport's header, in a message to the client (control/too_long.p4).
#define REMOTE_SERVERS_METADATA \
    @field_list(RESUBMIT_FIELDS) \
    bit<1> peer_is_server; \
    bit<16> max_mss; \
    bit<16> excerpt_bytes;
#endif

struct metadata_t {
    ARCHITECTURE_METADATA

    @field_list(SAMPLE_FIELDS)
    bit<8> verdict; // VERDICT_* or DROP_*
    @field_list(SAMPLE_FIELDS)
    bit<8> outcome; // OUTCOME_* (include/outcome.p4)
    SAMPLE_METADATA

    // port
    @field_list(RESUBMIT_FIELDS, SAMPLE_FIELDS)
    port_t ingress_port;
    @field_list(RESUBMIT_FIELDS)
    tick_t now;
    @field_list(WORKER_FIELDS, SAMPLE_FIELDS)
    port_t egress_port;
    bit<8> role;
    mac_t port_mac;

    // parser
    bit<8> protocol;        // of layer 4
    bit<16> extension_bytes;
    bit<8> parse_failure;   // why the parser stopped early, as a drop reason, for stages that need the missing headers
    bit<1> is_fragment;

    // control/validation.p4
    bit<16> ipv4_header_length;
    bit<1> has_no_source;    // the IPv6 source address is ::

    // control/transport.p4
    bit<1> may_hold_initial; // a long header of QUIC in a datagram that is large enough

    // tunnels (control/tunnel.p4): when a packet is resubmitted with these, the parser skips its outer headers
    @field_list(RESUBMIT_FIELDS)
    bit<1> from_tunnel;
    @field_list(RESUBMIT_FIELDS)
    bit<8> peer_site;        // the site of the tunnel's other end; 0: a host of this site
    @field_list(RESUBMIT_FIELDS)
    bit<16> peer_source_set; // the service addresses from which the peer may respond; 0: all
    @field_list(RESUBMIT_FIELDS)
    bit<16> inner_length;    // of the inner packet, from IP on
    @field_list(COPY_FIELDS)
    bit<8> origin_site;      // the site at which the client's packets enter: the tunnel's VNI or key
    Remote remote;
    bit<16> remote_id;
    REMOTE_SERVERS_METADATA

    // the client of a packet that may begin a connection (control/region.p4)
    bit<1> is_first_flight;
    bit<16> region; // zero: none

    // steering
    @field_list(COPY_FIELDS)
    bit<16> clone_session; // the clone session of the sites that get a copy; 0: none

    // control/neighbor.p4
    bit<1> is_advertisement; // a neighbor advertisement: the deparser has to compute its checksum

    // control/learning.p4
    sender_t sender;

    ICMP_ERROR_METADATA

    // VIP and its policy
    @field_list(SAMPLE_FIELDS)
    Direction direction;
    @field_list(SAMPLE_FIELDS)
    vip_id_t vip_id;
    bit<8> policy;
    bit<16> flow_unit;
    bit<16> tree_base;
    bit<8> tree_depth;
    bit<16> pool_size;
    bit<16> maglev_mask;

    // server
    @field_list(SAMPLE_FIELDS)
    sid_t sid;
    bit<16> slot;
    bit<1> active;
    bit<8> score_class;
    bit<1> from_real_server; // sent on the server's behalf, so its loads may be out of date
    CHECKER_METADATA
    SYN_METADATA

    // CRC-32 over client, VIP and their ports: the cookie's tweak, Maglev's hash, the connection tables' fingerprint
    @field_list(COPY_FIELDS)
    bit<32> connection_hash;

    // TCP's cookie, from a client and for a client
    cookie_halves_t opened;
    cookie_halves_t sealed;

    // QUIC over IPv6
    bit<1> at_cookie_address;   // UP: the client sends to its server's cookie address
    bit<1> from_cookie_address; // DOWN: the client expects its server's cookie address as the source
    bit<64> dip_difference;     // DOWN: interface ids of the DIP and of the source, XORed (control/unseal.p4)
    bit<1> is_from_dip;         // DOWN: the source is the DIP itself
    bit<64> cookie_prefix;
    bit<64> cookie_word;        // may hold a sealed cookie: the interface id, or part of the connection id
    quic_cookie_t quic_cookie;

    // server selection
    bit<1> is_new_connection; // SYN, or first Initial
    bit<1> can_carry_cookie;  // later packets of the connection can carry the cookie
    bit<1> is_assigned;       // the policy named a server for a new connection
    sid_t assigned_sid;
    bit<8> assigned_outcome;
    bit<1> candidate_found;
    sid_t candidate_sid;      // named by the packet, a table or the policy
    bit<1> has_recent;        // a packet of the server has just left (control/recent.p4)
    sid_t recent_sid;
    bit<1> hash_found;
    sid_t hash_sid;           // by Maglev

    // second hop (control/second_hop.p4)
    bit<1> is_refused;        // a server does not know the connection and sent the packet back
    sid_t refusing_sid;       // that server
    sid_t next_sid;           // the server of a refused packet
    bit<1> can_move;          // another server can follow if this one does not know the connection

    bit<1> reads_root;        // the operation on the tree is TREE_READ
    tree_t tree;
    connection_t connection;

    // the egress port's queue
    Discipline discipline;
    bit<8> rank;              // the flow's RPT, quantised as in the IPv6 carrier (docs/cookie.md)
    bit<1> has_cookie_rank;   // the cookie names the rank
    bit<8> cookie_rank;       // that rank
    aifo_t aifo;
    bit<1> has_priority;      // SP-PIFO: `priority` is final
    bit<3> priority;          // the larger, the more urgent
    depth_t ecn_threshold;
    bit<16> report_mask;      // a departure is reported if its number has none of these bits
    bit<1> report_departure;
    @field_list(WORKER_FIELDS)
    depth_t depth_after;      // AIFO: queue depth behind the departing packet
    @field_list(WORKER_FIELDS)
    bit<8> bound_decrement;   // SP-PIFO: lower every bound by this much

    // what the first pass decided for the second (control/cclb4.p4)
    @field_list(RESUBMIT_FIELDS)
    bit<1> second_pass;
    @field_list(RESUBMIT_FIELDS)
    bit<1> releases_handshake; // its server is gone
}

#endif
