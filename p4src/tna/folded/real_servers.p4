// SPDX-License-Identifier: Apache-2.0
// Real servers, as in control/real_servers.p4. All lookups begin at once, and a ternary table decides.
#ifndef FRONTAGE_TNA_FOLDED_REAL_SERVERS_P4
#define FRONTAGE_TNA_FOLDED_REAL_SERVERS_P4

control RealServers(in headers_t hdr, inout metadata_t meta) {
    DIRECT_COUNTER(down)

    action allow_sender(bit<1> from_real_server) {
        COUNT(down)
        meta.from_real_server = from_real_server;
        meta.is_allowed_sender = 1;
    }

    table sender {
        key = {
            meta.ingress_port: exact @name("ingress_port");
            meta.sid: exact @name("sid");
        }
        actions = { allow_sender; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = down;
        size = REAL_SERVER_SENDERS;
    }

    port_t other_port; // the port of the real server XOR that of the packet
    bit<1> is_real_server;
    bit<1> is_to_real_server;

    action set_real_server_port(port_t port) {
        other_port = port;
        is_real_server = 1;
    }

    table source4 {
        key = { hdr.ipv4.src: exact @name("src"); }
        actions = { set_real_server_port; NoAction; }
        const default_action = NoAction();
        size = REAL_SERVERS;
    }

    table source6 {
        key = { hdr.ipv6.src: exact @name("src"); }
        actions = { set_real_server_port; NoAction; }
        const default_action = NoAction();
        size = REAL_SERVERS;
    }

    action external_source() {
        is_to_real_server = 1;
    }

    table destination4 {
        key = { hdr.ipv4.dst: exact @name("dst"); }
        actions = { external_source; NoAction; }
        const default_action = NoAction();
        size = REAL_SERVERS;
    }

    table destination6 {
        key = { hdr.ipv6.dst: exact @name("dst"); }
        actions = { external_source; NoAction; }
        const default_action = NoAction();
        size = REAL_SERVERS;
    }

    action compare_ports() {
        other_port = other_port ^ meta.ingress_port;
    }

    action drop(bit<8> reason) {
        meta.REAL_SERVER_VERDICT = reason;
    }

    @hidden table decision {
        key = {
            meta.role: ternary;
            meta.direction: ternary;
            meta.is_allowed_sender: ternary;
            is_real_server: ternary;
            other_port: ternary;
            is_to_real_server: ternary;
        }
        actions = { drop; NoAction; }
        const entries = {
            (ROLE_SERVER, _, _, _, _, _): NoAction();
            (ROLE_REAL_SERVER, Direction.DOWN, 1, _, _, _): NoAction();
            (ROLE_REAL_SERVER, Direction.DOWN, _, _, _, _): drop(DROP_REAL_SERVER_SOURCE);
            (ROLE_REAL_SERVER, _, _, 1, 0, _): NoAction();
            (ROLE_REAL_SERVER, _, _, _, _, _): drop(DROP_REAL_SERVER_SOURCE);
            (_, _, _, 1, _, _): drop(DROP_SPOOFED_SOURCE); // otherwise a load balancer would respond to the real server
            (_, Direction.UP, _, _, _, _): NoAction();
            (_, _, _, _, _, 1): drop(DROP_REAL_SERVER_EXTERNAL);
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        is_real_server = 0;
        is_to_real_server = 0;
        other_port = 0;
        if (meta.role == ROLE_REAL_SERVER && meta.direction == Direction.DOWN) {
            sender.apply();
        }
        if (hdr.ipv4.isValid()) {
            source4.apply();
            destination4.apply();
        } else {
            source6.apply();
            destination6.apply();
        }
        compare_ports();
        decision.apply();
    }
}

#endif
