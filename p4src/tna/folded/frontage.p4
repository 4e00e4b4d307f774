// SPDX-License-Identifier: Apache-2.0
// Frontage's data plane in two or four pipes in sequence (docs/tofino.md, "The fold"). With FOUR_PIPES, a packet passes
//
//     ingress of the gate              ends of tunnels
//     egress of the edge               checks of packets from tunnels
//     ingress of the edge              checks, VIP, cookies of QUIC, limits, replies
//     egress of the core               cookies of TCP, demand, choice of the site
//     ingress of the core              choice of the server, route
//     egress of the scheduling pipe    outer headers of tunnels
//     ingress of the scheduling pipe   admission, and the priority in the queue
//     egress of the gate               comparison of the lengths, ECN marks, copies of first flights
//
// and otherwise the ingress of the edge, the egress of the core unchanged, the ingress of the core, and the egress of the edge.
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
#ifdef FOUR_PIPES
#include "../scheduling.p4"
#include "../window.p4"
#include "../../control/aifo.p4"
#include "../../control/sppifo.p4"
#include "../../control/scheduler.p4"
#include "scheduling.p4"
#include "gate.p4"
#include "inner.p4"
#undef COUNT
#define COUNT(name) name.count(TUNNEL_EGRESS_BYTES);
#include "../../control/encapsulation.p4"
#include "../../control/copies.p4"
#include "tunnels.p4"
#endif
#include "marks.p4"
#include "egress.p4"
#ifdef FOUR_PIPES
#include "rank.p4"
#endif
#include "edge.p4"

#ifdef FOUR_PIPES
#include "site.p4"
#endif

// Counters of the core exclude the headers of the fold.
#undef COUNT
#define COUNT(name) name.count(CORE_BYTES);
#include "../../control/server.p4"
#include "core.p4"

#ifdef FOUR_PIPES
Pipeline(
    GateParser(),
    GateIngress(),
    GateIngressDeparser(),
    EdgeEgressParser(),
    EdgeEgress(),
    EdgeEgressDeparser()
) gate;

Pipeline(
    FrontageIngressParser(),
    EdgeIngress(),
    EdgeIngressDeparser(),
    InnerParser(),
    InnerEgress(),
    InnerDeparser()
) edge;

Pipeline(
    FrontageIngressParser(),
    CoreIngress(),
    CoreIngressDeparser(),
    SiteParser(),
    SiteEgress(),
    SiteDeparser()
) core;
#else
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
#endif

#ifdef FOUR_PIPES
Pipeline(
    SchedulingIngressParser(),
    SchedulingIngress(),
    SchedulingIngressDeparser(),
    TunnelsParser(),
    TunnelsEgress(),
    TunnelsDeparser()
) scheduling;
#define PIPES gate, edge, core, scheduling
#else
#define PIPES edge, core
#endif

// To place one pipe alone, compile with -D ONLY_PIPE= and its name.
#ifdef ONLY_PIPE
Switch(ONLY_PIPE) main;
#else
Switch(PIPES) main;
#endif
