// Every size of the data plane. A VIP here is one service (address, protocol, port); a server is one (DIP, port).
#ifndef FRONTAGE_SIZE_P4
#define FRONTAGE_SIZE_P4

#define PORTS 512
#define VIPS 512
#define SERVERS 4096

// The tournament tree (control/tree.p4): each VIP owns an aligned block of a power of two of leaf slots, so that
// 4,096 servers in any split over VIPs fit in twice as many slots. TREE_SLOTS = 2 ^ (TREE_LEVELS + 1).
#define TREE_SLOTS 8192
#define TREE_LEVELS 12

// Round robin: a server of weight w stands in w places.
#define POOL_ENTRIES 16384

// Scores: 64 classes (pairs of a and weight in use) x 256 codes of N_AF or N_FF.
#define SCORES 16384

// Consistent hashing for flows without a cookie: 512 VIPs x 256 slots, or fewer and larger ones.
#define MAGLEV_SLOTS 131072
// Must stay 2^16: a CRC-16 indexes them.
#define FALLBACK_CONNECTIONS 65536
#define HANDSHAKES 65536

// Two epochs x 256 values of a byte, per round of the cookie's cipher.
#define COOKIE_ROUND 512
// Two epochs x servers.
#define STATIC_COOKIES 8192

// Bytes of the least datagram that holds a client's Initial (RFC 9000, 14.1).
#define QUIC_INITIAL 1200

// AIFO's window has at most 20 slots, so that 0 to 20 of its ranks are smaller than a packet's, on each port. A band of ranks is a factor of two in time.
#define AIFO_LIMITS 10752
#define RANK_BANDS 32
#define DISCIPLINES 4

// Artemis (control/steering.p4, control/tunnel.p4): prefixes of clients by region; deployments, as each service may have its own and move to another; and the
// sites of each (deployment, region).
#define CLIENT_PREFIXES 131072
#define DEPLOYMENTS 1024
#define MAPPINGS 131072
#define SITES 256
#define SID_RANGES 8192
#define DISPATCHER_SLOTS 64
// Ends of tunnels: sites, dispatchers and replicas; what they may bring.
#define TUNNEL_ENDPOINTS 8192
#define TUNNEL_ORIGINS 1024
#define TUNNEL_SOURCES 8192

// Demand (control/demand.p4): a service has a cell for each region from its base on, 16 services 8,192 each, or more of them fewer.
#define DEMAND_CELLS 131072
// Must stay 2^16: a CRC-16 indexes them.
#define RECENT_HANDSHAKES 65536
// Ticks of 1.05 s after which a handshake is not the same any more.
#define RECENT_TICKS 64

// QDSR (control/real_servers.p4): addresses of real servers, of one IP version; pairs of a port and a server for which it may send.
#define REAL_SERVERS 4096
#define REAL_SERVER_SENDERS 16384

#define NEIGHBORS 1024
#define IPV4_ROUTES 16384
#define IPV6_ROUTES 16384
#define NEXT_HOPS 8192

#endif
