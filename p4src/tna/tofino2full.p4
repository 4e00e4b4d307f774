// SPDX-License-Identifier: Apache-2.0
// The profile for four pipes of Tofino 2 in sequence: tofino2folded, and the schedulers, steering, tunnels and demand.
// docs/tofino.md lists what it omits.
#define FOUR_PIPES
#define CLIENT_PREFIXES 4096
#define MAPPINGS 65536
#define SID_RANGES 2048
#define TUNNEL_ENDPOINTS 4096
#define TUNNEL_SOURCES 4096
#define DEMAND_CELLS 65536
#define RECENT_HANDSHAKES 32768
#include "tofino2folded.p4"
