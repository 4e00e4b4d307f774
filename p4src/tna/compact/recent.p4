// SPDX-License-Identifier: Apache-2.0
// The server that last sent a packet of a connection with each hash index, as in control/recent.p4.
#ifndef FRONTAGE_TNA_COMPACT_RECENT_P4
#define FRONTAGE_TNA_COMPACT_RECENT_P4

// RecentServers (tna/stateful.p4) in one table of the chip.
control RecentEntries(in headers_t hdr, inout metadata_t meta) {
    Register<recent_server_t, bit<16>>(RECENT_SERVERS) entries;

    RegisterAction<recent_server_t, bit<16>, bit<32>>(entries) replace = {
        void apply(inout recent_server_t entry) {
            entry.fingerprint = meta.connection_hash;
            entry.sid = meta.recent_entry;
        }
    };

    RegisterAction<recent_server_t, bit<16>, bit<32>>(entries) look_up = {
        void apply(inout recent_server_t entry, out bit<32> own) {
            own = 0;
            if (entry.fingerprint == meta.connection_hash) {
                own = entry.sid;
            }
        }
    };

    action replace_entry() {
        replace.execute(meta.connection.index);
    }

    action look_up_entry() {
        meta.recent_result = look_up.execute(meta.connection.index);
    }

    @hidden table operation {
        key = {
            meta.direction: ternary;
            meta.verdict: ternary;
            hdr.tcp.isValid(): ternary;
            hdr.tcp.flags: ternary;
        }
        actions = { replace_entry; look_up_entry; @defaultonly NoAction; }
        const entries = {
            (Direction.DOWN, VERDICT_CONTINUE, _, _): replace_entry();
            (Direction.UP, VERDICT_CONTINUE, true, 0x04 &&& 0x04): look_up_entry(); // RST
        }
        const default_action = NoAction();
        size = 2;
    }

    apply {
        operation.apply();
    }
}

control Recent(in headers_t hdr, inout metadata_t meta) {
    @name("servers") RecentEntries() servers;

    action read_sid() {
        IN_HASH { meta.recent_entry = 15w0 ++ 1w1 ++ meta.sid; }
    }

    apply {
        read_sid();
        if (!IS_CHECK) {
            servers.apply(hdr, meta);
        }
    }
}

// The candidate of a packet that names none.
control RecentCandidate(inout metadata_t meta) {
    action use_recent() {
        meta.candidate_sid = meta.recent_result[15:0];
        meta.candidate_found = 1;
        meta.uses_recent = 1;
    }

    apply {
        if (meta.candidate_found == 0 && meta.recent_result[16:16] == 1) {
            use_recent();
        }
    }
}

#endif
