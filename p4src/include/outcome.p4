// SPDX-License-Identifier: Apache-2.0
// Outcomes of VIP packets: the indices of the counter FrontageIngress.outcomes. Each packet that is not dropped
// counts once. The controller reads the numbers from this file: keep one `#define OUTCOME_NAME number // text` per
// line.
#ifndef FRONTAGE_OUTCOME_P4
#define FRONTAGE_OUTCOME_P4

#define OUTCOME_NONE 0 // not a packet of a VIP, or dropped
#define OUTCOME_ASSIGNED_HASH 1 // SYN or first Initial: policy hash
#define OUTCOME_ASSIGNED_RR 2 // SYN or first Initial: policy cheetah-rr
#define OUTCOME_ASSIGNED_LL 3 // SYN: policy cheetah-ll, least local count
#define OUTCOME_ASSIGNED_CCLB4 4 // SYN or first Initial: policies cclb4*, least reported score
#define OUTCOME_ASSIGNED_FALLBACK 5 // SYN that cannot carry a cookie: Maglev
#define OUTCOME_ASSIGNED_NO_LOAD 6 // SYN or first Initial: the tree or pool has no active server yet: Maglev
#define OUTCOME_RETRIEVED_COOKIE 7 // server found from the echoed cookie
#define OUTCOME_RETRIEVED_TABLE 8 // server found in the connection table
#define OUTCOME_HASHED_NO_COOKIE 9 // no timestamp option and not in the connection table: Maglev
#define OUTCOME_HASHED_BAD_COOKIE 10 // timestamp echo does not unseal, or names no server of this VIP: Maglev
#define OUTCOME_INSIGHT 11 // from a server, with its loads
#define OUTCOME_NO_INSIGHT 12 // from a server, without loads
#define OUTCOME_RETRIEVED_ADDRESS 13 // QUIC: server found from the cookie address
#define OUTCOME_RETRIEVED_CID 14 // QUIC: server found from the connection id
#define OUTCOME_RETRIEVED_HANDSHAKE 15 // QUIC: server found in the handshake table
#define OUTCOME_HASHED_HANDSHAKE 16 // first Initial whose handshake table entry is in use by another: Maglev
#define OUTCOME_STEERED_SITE 17 // first flight, to the site that the mapping names
#define OUTCOME_STEERED_DISPATCHER 18 // first flight, to a dispatcher
#define OUTCOME_STEERED_CID 19 // to the site of the server that the connection id names
#define OUTCOME_RESPONSE_CLIENT 20 // response from a tunnel, to its client
#define OUTCOME_RESPONSE_SITE 21 // response of a local replica, to the site where its client enters
#define OUTCOME_REAL_SERVER 22 // from a real server in a server's name: its loads are ignored
#define OUTCOME_CHECK 23 // health check, to the server that its source port names
#define OUTCOME_ERROR_RETRIEVED 24 // ICMP error, to the server that its quote or a table names
#define OUTCOME_ERROR_HASHED 25 // ICMP error whose quote names no server, and which is in no table: Maglev
#define OUTCOME_RETRIEVED_RECENT 26 // RST without a cookie, to the server that last sent a packet of the connection
#define OUTCOME_TOO_LONG 27 // longer than the tunnel to its remote server carries: an ICMP message tells the client
#define OUTCOME_SYN_ANSWERED 28 // SYN to a VIP under SYN flood: the switch answered it
#define OUTCOME_SECOND_HOP 29 // TCP without a cookie: its server does not know the connection, so the next one gets the packet
#define OUTCOME_STEERED_COOKIE 30 // TCP, or an ICMP error about it: to the site of the server that the cookie names
#define OUTCOMES 32

// The index into the claims of the connection table (TCP) and of the handshake table (QUIC).
#define CLAIM_TAKEN 0 // entry claimed
#define CLAIM_REFUSED 1 // entry in use by another live connection: consistent hashing serves this one
#define CLAIM_KINDS 2

// The index into the counter of SYNs and SYN-ACKs of remote servers (control/mss.p4).
#define MSS_KEPT 0 // within the tunnel's limit
#define MSS_CLAMPED 1 // lowered to the tunnel's limit
#define MSS_UNKNOWN 2 // the maximum segment size is not the first option: unchanged
#define MSS_KINDS 3

// Kinds of limits: with the VIP, the index into the refusals of control/limits.p4.
#define LIMIT_CLIENT_CONNECTIONS 0 // new connections of a client prefix
#define LIMIT_CONNECTIONS 1 // new connections of the VIP
#define LIMIT_CLIENT_BANDWIDTH 2 // bandwidth of a client prefix
#define LIMIT_BANDWIDTH 3 // bandwidth of the VIP

// Packets of the defence against SYN floods: with the VIP, the index into the packets of control/syn_answer.p4.
#define SYNS_PASSED 0 // SYNs that reached a server
#define SYNS_ANSWERED 1 // SYNs that the switch answered
#define SYNS_COMPLETED 2 // acknowledgments that proved the client's address
#define SYNS_REFUSED 3 // packets without a valid SYN cookie

#endif
