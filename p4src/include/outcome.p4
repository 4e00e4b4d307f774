// What became of a packet of a VIP: the index into FrontageIngress.outcomes, one a packet.
// Read by the controller from this file: keep one `#define OUTCOME_NAME number // text` a line.
#ifndef FRONTAGE_OUTCOME_P4
#define FRONTAGE_OUTCOME_P4

#define OUTCOME_NONE 0 // not a packet of a VIP, or dropped
#define OUTCOME_ASSIGNED_HASH 1 // SYN or first Initial: policy hash
#define OUTCOME_ASSIGNED_RR 2 // SYN or first Initial: policy cheetah-rr
#define OUTCOME_ASSIGNED_LL 3 // SYN: policy cheetah-ll, least local count
#define OUTCOME_ASSIGNED_CCLB4 4 // SYN or first Initial: policies cclb4*, least reported score
#define OUTCOME_ASSIGNED_FALLBACK 5 // SYN that cannot carry a cookie: Maglev
#define OUTCOME_ASSIGNED_NO_LOAD 6 // SYN or first Initial: no active server is known yet to the tree or the round: Maglev
#define OUTCOME_RETRIEVED_COOKIE 7 // server found from the echoed cookie
#define OUTCOME_RETRIEVED_TABLE 8 // server found in the connection table
#define OUTCOME_HASHED_NO_COOKIE 9 // no timestamp option and not in the connection table: Maglev
#define OUTCOME_HASHED_BAD_COOKIE 10 // timestamp echo does not open, or names no server of this VIP: Maglev
#define OUTCOME_INSIGHT 11 // from a server, with its loads
#define OUTCOME_NO_INSIGHT 12 // from a server, without
#define OUTCOME_RETRIEVED_ADDRESS 13 // QUIC: server found from the cookie address
#define OUTCOME_RETRIEVED_CID 14 // QUIC: server found from the connection id
#define OUTCOME_RETRIEVED_HANDSHAKE 15 // QUIC: server found in the handshake table
#define OUTCOME_HASHED_HANDSHAKE 16 // first Initial whose place in the handshake table is another's: Maglev
#define OUTCOME_STEERED_SITE 17 // first flight, to the site that the mapping names
#define OUTCOME_STEERED_DISPATCHER 18 // first flight, to a dispatcher
#define OUTCOME_STEERED_CID 19 // to the site whose server the connection id names
#define OUTCOME_RESPONSE_CLIENT 20 // answer out of a tunnel, on to its client
#define OUTCOME_RESPONSE_SITE 21 // answer of a replica here, on to the site where its client came in
#define OUTCOME_REAL_SERVER 22 // from a real server in a server's name: its loads are not heard
#define OUTCOMES 32

// The index into the claims of the connection table (TCP) and of the handshake table (QUIC).
#define CLAIM_TAKEN 0 // an entry was taken
#define CLAIM_REFUSED 1 // its place belongs to another live one: consistent hashing alone serves this one
#define CLAIM_KINDS 2

#endif
