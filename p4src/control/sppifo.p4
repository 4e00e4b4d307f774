// SP-PIFO (Alcoz et al., NSDI 2020): approximates a PIFO queue by strict priorities. Each priority has a bound; a packet goes to the first one, looking from
// the least urgent, whose bound its rank reaches, and becomes that bound ("push-up"). One whose rank is below even the most urgent bound was overtaken by a
// larger one: by that difference all bounds sink ("push-down"). Those of the other priorities have been touched by then, so a worker packet lowers them.
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
