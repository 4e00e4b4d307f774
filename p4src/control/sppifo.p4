// SPDX-License-Identifier: Apache-2.0
// SP-PIFO (Alcoz et al., NSDI 2020): approximates a PIFO queue with strict priorities. Each priority has a bound. A
// packet gets the first priority, from the least urgent on, whose bound is not above the packet's rank, and its rank
// becomes that bound ("push-up"). A rank below even the most urgent bound means that a packet with a larger rank went
// ahead: all bounds decrease by the difference ("push-down"). The registers of the other priorities have been
// accessed by then, so a worker packet lowers those.
control SpPifo(inout metadata_t meta) {
    PriorityBounds() bounds; // scheduling.p4 of the architecture

    apply {
        bounds.apply(meta);
    }
}
