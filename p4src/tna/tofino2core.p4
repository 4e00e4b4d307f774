// SPDX-License-Identifier: Apache-2.0
// The profile for Tofino 2 with an ingress that fits the chip: CCLB4 over TCP and QUIC. docs/tofino.md lists the omitted features.
#include <core.p4>
#include <t2na.p4>

#ifndef CONNECTION_INDEX_BITS
#define CONNECTION_INDEX_BITS 15 // a stage has no room for 65,536 entries of 64 bits
#endif
#define COMPACT
#define WITHOUT_LEARNING
#define WITHOUT_RECENT
#define WITHOUT_STEERING
#define WITHOUT_REMOTE_SERVERS
#define WITHOUT_SYN_DEFENCE
#define WITHOUT_EGRESS_REWRITES
#define WITHOUT_ICMP_ERRORS
#define IPV4_ROUTES 4096
#define IPV6_ROUTES 2048

#include "../include/size.p4"
#include "compact/frontage.p4"
