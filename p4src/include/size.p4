// SPDX-License-Identifier: Apache-2.0
// Every size of the data plane. A VIP here is one service (address, protocol, port); a server is one (DIP, port).
#ifndef FRONTAGE_SIZE_P4
#define FRONTAGE_SIZE_P4

#define PORTS 512
#define VIPS 512
#define SERVERS 4096

// The tournament tree (control/tree.p4): each VIP owns an aligned block of leaf slots, a power of two. With twice as
// many slots as servers, 4,096 servers fit in any split over VIPs. A VIP has at most 2 ^ TREE_LEVELS slots.
#define TREE_SLOTS 8192
#ifndef TREE_LEVELS
#define TREE_LEVELS 12
#endif

// Round robin: a server of weight w has w pool entries.
#define POOL_ENTRIES 16384

// Scores: 64 classes (pairs of a and weight in use) x 256 codes of N_AF or N_FF.
#define SCORES 16384

// Consistent hashing of packets without a cookie: 512 VIPs x 256 slots, or fewer VIPs with more slots.
#define MAGLEV_SLOTS 131072
// Slots with other servers than that of the hash (control/second_hop.p4)
#ifndef SECOND_HOP_SLOTS
#define SECOND_HOP_SLOTS MAGLEV_SLOTS
#endif
// As many as a CRC-16 of CONNECTION_INDEX_BITS bits, which indexes them
#ifndef CONNECTION_INDEX_BITS
#define CONNECTION_INDEX_BITS 16
#endif
#define FALLBACK_CONNECTIONS (1 << CONNECTION_INDEX_BITS)
#define HANDSHAKES (1 << CONNECTION_INDEX_BITS)
#define RECENT_SERVERS (1 << CONNECTION_INDEX_BITS)
// Ticks after which an idle connection or handshake expires: 120 s and 10.5 s. The controller can change them if the
// architecture lets it; otherwise, compile with -D.
#ifndef FALLBACK_TICKS
#define FALLBACK_TICKS 115
#endif
#ifndef HANDSHAKE_TICKS
#define HANDSHAKE_TICKS 10
#endif

// Two epochs x 256 values of a byte, for each round of the cookie's cipher.
#define COOKIE_ROUND 512
// Two epochs x servers.
#define STATIC_COOKIES 8192

// Bytes of the smallest datagram that may hold a client's Initial (RFC 9000, 14.1).
#define QUIC_INITIAL 1200

// AIFO: a limit for each port and each number of smaller ranks, 0 to 20, in a window of at most 20 slots.
// A band of ranks spans a factor of two in time.
#define AIFO_LIMITS 10752
#define RANK_BANDS 32
#define DISCIPLINES 4

// Artemis (control/steering.p4, control/tunnel.p4): client prefixes by region, deployments, and a mapping entry for
// each (deployment, region). There are more deployments than services, so that each service can have its own and move
// to another one.
#ifndef CLIENT_PREFIXES
#define CLIENT_PREFIXES 131072
#endif
#define DEPLOYMENTS 1024
#ifndef MAPPINGS
#define MAPPINGS 131072
#endif
#define SITES 256
#ifndef SID_RANGES
#define SID_RANGES 8192
#endif
#define DISPATCHER_SLOTS 64
// Tunnel endpoints: sites, dispatchers and replicas; and the packets that each may send.
#ifndef TUNNEL_ENDPOINTS
#define TUNNEL_ENDPOINTS 8192
#endif
#define TUNNEL_ORIGINS 1024
#ifndef TUNNEL_SOURCES
#define TUNNEL_SOURCES 8192
#endif

// Demand (control/demand.p4): a cell for each service and region, such as 16 services x 8,192 regions.
#ifndef DEMAND_CELLS
#define DEMAND_CELLS 131072
#endif
// At least as many as a CRC-16 of CONNECTION_INDEX_BITS bits, which indexes them
#ifndef RECENT_HANDSHAKES
#define RECENT_HANDSHAKES 65536
#endif
// Ticks of 1.05 s within which a repeated first packet belongs to the same handshake.
#define RECENT_TICKS 64

// QDSR (control/real_servers.p4): addresses of real servers, for each IP version; pairs of a port and a server for
// which it may send.
#define REAL_SERVERS 4096
#ifndef REAL_SERVER_SENDERS
#define REAL_SERVER_SENDERS 16384
#endif

// Remote servers (control/remote_servers.p4): the tunnels of their endpoints.
#define SERVER_TUNNELS 8192

// Health checks (control/checker.p4): addresses of checkers, of each IP version.
#define CHECKERS 16

// Limits (control/limits.p4): client prefixes of one kind of limit and one IP version. The counter of dropped packets has
// a cell for each VIP and each of its four kinds of limits.
#ifndef LIMITED_PREFIXES
#define LIMITED_PREFIXES 4096
#endif
#define LIMIT_COUNTERS 2048

// The defence against SYN floods: the counter has a cell for each VIP and each of four kinds of packets.
#define SYN_COUNTERS 2048

#define NEIGHBORS 1024
#ifndef IPV4_ROUTES
#define IPV4_ROUTES 16384
#define IPV6_ROUTES 16384
#endif
#define NEXT_HOPS 8192
// Groups of next hops (control/groups.p4), their next hops together, and the next hops of one group.
#define NEXT_HOP_GROUPS 1024
#define GROUP_MEMBERS 16384
#define GROUP_SIZE 64

#endif
