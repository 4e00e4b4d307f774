// SPDX-License-Identifier: Apache-2.0
// Rewrites the destination from the VIP to the DIP, as control/server.p4 does.
#ifndef FRONTAGE_TNA_COMPACT_SERVER_P4
#define FRONTAGE_TNA_COMPACT_SERVER_P4

control Server(inout headers_t hdr, inout metadata_t meta) {
    DIRECT_COUNTER(up4)

    action to_server4(ipv4_t dip, bit<16> port) {
        COUNT(up4)
        hdr.ipv4.dst = dip;
        hdr.ports.dst_port = port;
    }

    DIRECT_COUNTER(up6)

    action to_server6(ipv6_t dip, bit<16> port) {
        COUNT(up6)
        hdr.ipv6.dst = dip;
        hdr.ports.dst_port = port;
    }

    action server_gone() {
        meta.verdict = DROP_SERVER_GONE;
    }

    table server4 {
        key = { meta.sid: exact @name("sid"); }
        actions = { to_server4; @defaultonly server_gone; }
        const default_action = server_gone();
        counters = up4;
        size = SERVERS;
    }

    table server6 {
        key = { meta.sid: exact @name("sid"); }
        actions = { to_server6; @defaultonly server_gone; }
        const default_action = server_gone();
        counters = up6;
        size = SERVERS;
    }

    apply {
        if (meta.direction == Direction.UP && meta.verdict == VERDICT_CONTINUE) {
            if (hdr.ipv4.isValid()) {
                server4.apply();
            } else {
                server6.apply();
            }
        }
    }
}

#endif
