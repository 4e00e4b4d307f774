// SPDX-License-Identifier: Apache-2.0
// The profile for Tofino 1: CCLB4 over TCP and QUIC, masking, and the connection table. It leaves out steering, tunnels,
// demand, real servers, schedulers, health checks and the resolution of neighbors.
#include <core.p4>
#include <tna.p4>

#define TREE_LEVELS 10 // 10 or 12 (control/tree.p4)
#define WITHOUT_STEERING
#define WITHOUT_REAL_SERVERS
#define WITHOUT_SCHEDULERS
#define WITHOUT_LEARNING
#define WITHOUT_CHECKER
#define WITHOUT_EGRESS_REWRITES

#include "../include/size.p4"
#include "frontage.p4"
