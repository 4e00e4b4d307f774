// SPDX-License-Identifier: Apache-2.0
// Equal-cost paths (RFC 2992): a group of next hops, one of which each flow keeps while the group stays the same.
control NextHopGroup(inout metadata_t meta, in bit<16> group, in bit<32> flow_hash, inout bit<16> next_hop_id) {
    NEXT_HOP_SELECTOR(selector)

    action set_next_hop(bit<16> next_hop) {
        next_hop_id = next_hop;
    }

    // The entry of a group without members is not installed.
    table members {
        key = {
            group: exact @name("group");
            flow_hash: selector @name("flow_hash");
        }
        actions = { set_next_hop; }
        implementation = selector;
        size = NEXT_HOP_GROUPS;
    }

    apply {
        if (members.apply().miss) {
            meta.verdict = DROP_NO_NEXT_HOP;
        }
    }
}
