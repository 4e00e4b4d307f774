// SPDX-License-Identifier: Apache-2.0
// SP-PIFO (Alcoz et al., NSDI 2020): approximates a PIFO queue with strict priorities. Each priority has a bound. A
// packet gets the first priority, from the least urgent on, whose bound is not above the packet's rank, and its rank
// becomes that bound ("push-up"). A rank below even the most urgent bound means that a packet with a larger rank went
// ahead: all bounds decrease by the difference ("push-down"). The registers of the other priorities have been
// accessed by then, so a worker packet lowers those.
control SpPifo(inout metadata_t meta) {
    PriorityBound(0) bound0;
    PriorityBound(1) bound1;
    PriorityBound(2) bound2;
    PriorityBound(3) bound3;
    PriorityBound(4) bound4;
    PriorityBound(5) bound5;
    PriorityBound(6) bound6;
    PriorityBound(SP_PIFO_MOST_URGENT) bound7;

    apply {
        bound0.apply(meta);
        bound1.apply(meta);
        bound2.apply(meta);
        bound3.apply(meta);
        bound4.apply(meta);
        bound5.apply(meta);
        bound6.apply(meta);
        bound7.apply(meta);
    }
}
