// SPDX-License-Identifier: Apache-2.0
// Fragments from servers (docs/icmp.md). Only first fragments have ports, so the switch cannot give the others the VIP as
// source. It drops all of them, because a DIP must not reach a client.
control Fragments(in headers_t hdr, inout metadata_t meta) {
    action drop_fragment() {
        meta.VIP_VERDICT = DROP_SERVER_FRAGMENT;
    }

    table source4 {
        key = { hdr.ipv4.src: exact @name("src"); }
        actions = { drop_fragment; NoAction; }
        const default_action = NoAction();
        size = SERVERS;
    }

    // The address of a server, or the /64 from which a QUIC server may send.
    table source6 {
        key = { hdr.ipv6.src: lpm @name("src"); }
        actions = { drop_fragment; NoAction; }
        const default_action = NoAction();
        size = SERVERS;
    }

    apply {
        if (meta.is_fragment == 1) {
            if (hdr.ipv4.isValid()) {
                source4.apply();
            } else {
                source6.apply();
            }
        }
    }
}
