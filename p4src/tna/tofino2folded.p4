// SPDX-License-Identifier: Apache-2.0
// The profile for two pipes of Tofino 2 in sequence. docs/tofino.md lists the features that it omits.
#include <core.p4>
#include <t2na.p4>

#ifndef CONNECTION_INDEX_BITS
#define CONNECTION_INDEX_BITS 15 // a stage has no room for 65,536 entries of 64 bits
#endif
#define COMPACT
#define FOLDED
#ifndef FOUR_PIPES
#define WITHOUT_STEERING
#endif
#define WITHOUT_REMOTE_SERVERS
#define WITHOUT_SYN_DEFENCE
#define WITHOUT_ICMP_ERRORS
#define IPV4_ROUTES 4096
#define IPV6_ROUTES 2048
#define LIMITED_PREFIXES 2048
#define SECOND_HOP_SLOTS 32768
#define REAL_SERVER_SENDERS 8192

#include "../include/size.p4"
#include "folded/frontage.p4"
