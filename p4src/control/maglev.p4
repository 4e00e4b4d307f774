// SPDX-License-Identifier: Apache-2.0
// Consistent hashing (Maglev, NSDI 2016, section 3.4): the server of a packet that no cookie or table names. A change
// of the set of servers moves few connections.
control Maglev(inout metadata_t meta) {
    bit<16> maglev_slot;

    action select_server(sid_t sid) {
        meta.hash_sid = sid;
        meta.hash_found = 1;
    }

    table maglev {
        key = {
            meta.vip_id: exact @name("vip_id");
            maglev_slot: exact @name("slot");
        }
        actions = { select_server; NoAction; }
        const default_action = NoAction();
        size = MAGLEV_SLOTS;
    }

    apply {
        maglev_slot = meta.connection_hash[15:0] & meta.maglev_mask;
        maglev.apply();
    }
}
