// SPDX-License-Identifier: Apache-2.0
// Frontage's data plane in two pipes in sequence (docs/tofino.md, "The fold"). A packet passes
//
//     ingress of the edge    checks, VIP, cookies of QUIC, limits, replies
//     egress of the core     unchanged
//     ingress of the core    cookies of TCP, choice of the server, route
//     egress of the edge     comparison of the lengths
#include "../../include/drop.p4"
#include "../../include/outcome.p4"
#include "fold.p4"
#include "../compact/metadata.p4"
#include "../arch.p4"
#include "../../include/headers.p4"
#include "../../include/metadata.p4"

#include "../parser.p4"
#include "../counters.p4"
#include "../stateful.p4"
#include "../worker.p4"
#include "../checksum.p4"
#include "../frame_length.p4"
#include "../../control/tree.p4"
#include "../tree.p4"
#include "../../control/cookie.p4"
#include "../../control/maglev.p4"
#include "../../control/checker.p4"
#include "../../control/fragments.p4"
#include "../compact/checks.p4"
#include "../compact/neighbor.p4"
#include "../compact/learning.p4"
#include "../compact/vip.p4"
#include "../compact/hash.p4"
#include "../compact/cookie.p4"
#include "../compact/insight.p4"
#include "../compact/unseal.p4"
#include "../compact/handshake.p4"
#include "../compact/quic.p4"
#include "../compact/recent.p4"
#include "../compact/choice.p4"
#include "../compact/groups.p4"
#include "../compact/tree.p4"
#include "../compact/crossing.p4"

#include "limits.p4"
#include "real_servers.p4"
#include "departure.p4"
#include "refusal.p4"
#include "arrival.p4"
#include "second_hop.p4"
#include "edge.p4"

// Counters of the core exclude the header of the fold.
#undef COUNT
#define COUNT(name) name.count(FOLD_BYTES);
#include "../../control/server.p4"
#include "core.p4"

Pipeline(
    FrontageIngressParser(),
    EdgeIngress(),
    EdgeIngressDeparser(),
    EdgeEgressParser(),
    EdgeEgress(),
    EdgeEgressDeparser()
) edge;

Pipeline(
    FrontageIngressParser(),
    CoreIngress(),
    CoreIngressDeparser(),
    CoreEgressParser(),
    CoreEgress(),
    CoreEgressDeparser()
) core;

// To place one pipe alone, compile with -D ONLY_PIPE= and its name.
#ifdef ONLY_PIPE
Switch(ONLY_PIPE) main;
#else
Switch(edge, core) main;
#endif
