// SPDX-License-Identifier: Apache-2.0
// The profile for Tofino 1 with QUIC instead of TCP: CCLB4 over QUIC, masking, and the handshake table. docs/tofino.md lists
// the features that it omits.
#include <core.p4>
#include <tna.p4>

#define TREE_LEVELS 7 // 7, 10 or 12 (control/tree.p4)
#define COMPACT
#define WITHOUT_TCP
#define WITHOUT_FRAGMENTS
#define WITHOUT_RECENT
#define WITHOUT_STEERING
#define WITHOUT_NEXT_HOP_GROUPS
#define WITHOUT_LEARNING
#define WITHOUT_CHECKER
#define WITHOUT_REMOTE_SERVERS
#define WITHOUT_SYN_DEFENCE
#define WITHOUT_EGRESS_REWRITES
#define WITHOUT_ICMP_ERRORS
#define IPV4_ROUTES 2048
#define IPV6_ROUTES 2048

#include "../include/size.p4"
#include "compact/quic/frontage.p4"
