#ifndef FRONTAGE_METADATA_P4
#define FRONTAGE_METADATA_P4

typedef bit<9> port_t;
typedef bit<16> sid_t;
typedef bit<16> vip_id_t;
typedef bit<19> depth_t; // of a queue, in packets

const bit<8> ROLE_CLIENT = 1;
const bit<8> ROLE_SERVER = 2;
// 3 is a port to other sites: a key of the tunnels' tables, which no code compares.
const bit<8> ROLE_REAL_SERVER = 4;

const bit<8> POLICY_HASH = 1;
const bit<8> POLICY_CHEETAH_RR = 2;
const bit<8> POLICY_CHEETAH_LL = 3;
const bit<8> POLICY_CCLB4 = 4; // cclb4-current and cclb4-future are this with a = 1 and a = 0 in its score tables

enum bit<8> Direction {
    TRANSIT = 0,   // no packet of a VIP
    UP = 1,        // client to VIP
    DOWN = 2,      // server to client
    CONTROLLER = 3, // a command, which goes no further
    WORKER = 4,     // news of a queue, which goes no further
    RESPONSE = 5    // of a replica to its client, through tunnels: its source is the service address already
}

const bit<8> TREE_NONE = 0;
const bit<8> TREE_SET = 1;   // the server reports its score
const bit<8> TREE_ADD = 2;   // a flow was given to it: counts until its next report
const bit<8> TREE_SUB = 3;   // a flow of it ended (cheetah-ll)
const bit<8> TREE_SEED = 4;  // it is active: score zero, unless its own is known
const bit<8> TREE_CLEAR = 5; // it takes no new flows
const bit<8> TREE_READ = 6;  // the best of the VIP

// One walk through the tournament tree (control/tree.p4): what to do, where, and what came out at the top.
struct tree_t {
    bit<8> op;
    bit<8> depth;  // of this VIP's tree: it has 2^depth slots
    bit<16> slot;  // the leaf; to read the root, any leaf of the VIP
    sid_t sid;
    bit<16> coins; // a bit for each level: decides between equals
    bit<16> score; // SET: the score; ADD, SUB: the difference
    bit<32> best;  // headroom (16) | SID (16); zero: no server
}

const bit<8> CONNECTION_NONE = 0;
const bit<8> CONNECTION_LOOKUP = 1;
const bit<8> CONNECTION_CLAIM = 2;
const bit<8> CONNECTION_JOIN = 3;    // as the one that is there under the same addresses and ports, else claim
const bit<8> CONNECTION_RELEASE = 4; // what is there under the same addresses and ports is over

// One visit to the connection table (control/fallback.p4) or the handshake table (control/handshake.p4).
struct connection_t {
    bit<8> op;
    bit<16> index;
    bit<32> fingerprint;
    sid_t sid;
    bit<16> now;     // ticks
    bit<16> timeout; // ticks
    bit<1> refresh;  // LOOKUP: it lives on
    bit<1> done;     // LOOKUP: found; CLAIM: taken; JOIN: found or taken
    bit<1> taken;    // CLAIM, JOIN: taken
}

enum bit<8> Carried {
    NOTHING = 0,
    STATIC_COOKIE = 1,
    DYNAMIC_COOKIE = 2,
    SEALED_CID = 3,
    PLAIN_CID = 4
}

// What a QUIC packet carries in an interface id or a connection id (control/unseal.p4).
struct carried_t {
    Carried what;
    bit<1> epoch;
    sid_t sid;
    bit<8> rpt;
    bit<8> n_af;
    bit<8> n_ff;
    bit<1> x;
}

// What a packet leaves to in a tunnel (control/encapsulation.p4): a kind, and which of them.
enum bit<8> Remote {
    NONE = 0,
    SITE = 1,       // by its id
    DISPATCHER = 2, // by a slot of the connection's hash
    REPLICA = 3     // by its SID
}

enum bit<8> Encapsulated {
    VXLAN = 1,
    GRE = 2
}

enum bit<8> Discipline {
    NONE = 0, // of a port that no entry describes: FIFO
    FIFO = 1,
    AIFO = 2,
    SP_PIFO = 3
}

// What AIFO goes by (control/aifo.p4).
struct aifo_t {
    bit<8> window;    // its length
    bit<16> sample;   // one packet in so many enters the window
    depth_t capacity; // of the queue
    bit<8> slot;      // of the window that this packet takes
    bit<8> smaller;   // ranks in the window that are smaller
    depth_t limit;    // with more waiting it is refused
}

const bit<8> AIFO_NO_SLOT = 0xff;
const bit<8> SP_PIFO_MOST_URGENT = 7;

// What a worker packet brings to ingress (v1model/worker.p4).
#define WORKER_FIELDS 2

// What a resubmitted packet keeps: the server that its first pass found, and what its second tells the tree.
#define RESUBMIT_FIELDS 1

// What a copy of a first flight's packet brings to egress (control/copies.p4).
#define COPY_FIELDS 3

struct metadata_t {
    bit<8> drop;     // include/drop.p4
    bit<8> outcome;  // include/outcome.p4

    // port
    @field_list(RESUBMIT_FIELDS)
    port_t ingress_port;
    @field_list(RESUBMIT_FIELDS)
    bit<16> now;     // ticks of 2^20 us, 1.05 s
    @field_list(WORKER_FIELDS)
    port_t egress_port;
    bit<8> role;
    mac_t port_mac;

    // parser
    bit<8> left;     // words or units still to extract
    bit<8> skip;
    bit<8> protocol; // of layer 4
    bit<8> extension_units; // of 8 bytes
    bit<8> unparsed; // why the parser stopped early, as a drop reason, for those who need what it did not reach
    bit<1> fragment;

    // tunnels (control/tunnel.p4): the parser passes over the outer headers of a packet that is resubmitted with these
    @field_list(RESUBMIT_FIELDS)
    bit<1> tunnelled;
    @field_list(RESUBMIT_FIELDS)
    bit<8> peer_site;     // whose end it comes from; 0: a host of our own site
    @field_list(RESUBMIT_FIELDS)
    bit<16> peer_sources; // the service addresses from which that may answer; 0: any
    @field_list(RESUBMIT_FIELDS)
    bit<16> frame_length; // of what was in the tunnel, from Ethernet on
    @field_list(COPY_FIELDS)
    bit<8> origin;        // the site at which the packet's client comes in: VNI or key
    Remote remote;
    bit<16> remote_number;

    // what begins a connection: where its client is (control/region.p4)
    bit<1> is_first;
    bit<16> region; // zero: none

    // steering
    @field_list(COPY_FIELDS)
    bit<16> copies;       // the clone session of the sites that get a copy; 0: none

    // replies to the sender (control/neighbor.p4)
    bit<1> answered;
    bit<1> advertise; // a neighbor advertisement, whose checksum is still to be computed

    // VIP and its policy
    Direction direction;
    vip_id_t vip_id;
    bit<8> policy;
    bit<16> flow_unit;
    bit<16> tree_base;
    bit<8> tree_depth;
    bit<16> pool_size;
    bit<16> maglev_mask;

    // server
    sid_t sid;
    bit<16> slot;
    bit<1> active;
    bit<8> score_class;
    bit<1> from_real_server; // a real server sent it in this one's name, and has its loads by hearsay

    // CRC-32 over client, VIP and their ports: the cookie's tweak, Maglev's hash, the connection tables' fingerprint
    @field_list(COPY_FIELDS)
    bit<32> connection_hash;

    // QUIC over IPv6
    bit<1> at_cookie_address; // the client knows its server by that address
    bit<64> interface_id;     // of the cookie address, or that the server sends from
    bit<64> dip_id;           // the server's own
    bit<64> cookie_prefix;
    carried_t carried;

    // the choice of a server
    bit<1> begins;    // SYN, or first Initial
    bit<1> can_carry; // ... of a flow that can be found again from what its packets carry
    bit<1> is_named;
    sid_t named;      // by the packet, by a table, or by the policy
    bit<1> is_hashed;
    sid_t hashed;     // by Maglev

    tree_t tree;
    connection_t connection;

    // the queue of the port that it leaves by
    Discipline discipline;
    bit<8> rank;         // the flow's RPT, quantised as in the IPv6 carrier (docs/cookie.md)
    aifo_t aifo;
    bit<1> placed;       // SP-PIFO: it has its priority ...
    bit<3> priority;     // ... this one; a larger one is more urgent
    depth_t ecn_threshold;
    bit<16> report_mask; // departures are reported whose number has none of these bits
    bit<1> report;       // this departure
    @field_list(WORKER_FIELDS)
    depth_t left_behind; // AIFO: packets that wait behind it
    @field_list(WORKER_FIELDS)
    bit<8> sink;         // SP-PIFO: by how much bounds are to sink

    // one's complement sums of what may be rewritten, taken off on arrival and added at departure (RFC 1624)
    bit<32> ipv4_residue;
    bit<32> transport_residue;

    bit<1> again;        // this pass only chose: pass once more
    @field_list(RESUBMIT_FIELDS)
    bit<1> second_pass;
    @field_list(RESUBMIT_FIELDS)
    bit<8> pass_tree;       // what to do then in the tree ...
    @field_list(RESUBMIT_FIELDS)
    bit<8> pass_connection; // ... and in the handshake table
    @field_list(RESUBMIT_FIELDS)
    bit<16> pass_slot;
    @field_list(RESUBMIT_FIELDS)
    sid_t pass_sid;
    @field_list(RESUBMIT_FIELDS)
    bit<8> pass_outcome;
}

#endif
