// SPDX-License-Identifier: Apache-2.0
// Groups of next hops, as in control/groups.p4. A packet of a group without members has the next hop zero, which is never
// installed, because a condition on the hit would cost a stage.
#ifndef FRONTAGE_TNA_COMPACT_GROUPS_P4
#define FRONTAGE_TNA_COMPACT_GROUPS_P4

control NextHopGroup(in metadata_t meta, in bit<16> group, inout bit<16> next_hop_id) {
    NEXT_HOP_SELECTOR(selector)

    action set_next_hop(bit<16> next_hop) {
        next_hop_id = next_hop;
    }

    table members {
        key = {
            group: exact @name("group");
            meta.connection_hash: selector @name("flow_hash");
        }
        actions = { set_next_hop; }
        implementation = selector;
        size = NEXT_HOP_GROUPS;
    }

    apply {
        members.apply();
    }
}

#endif
