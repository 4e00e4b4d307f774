// SPDX-License-Identifier: Apache-2.0
// QDSR's real servers (QDSR, 3 and 6.1; docs/real-servers.md). A load balancer, which is a server of a VIP, delegates
// responses to real servers, which send them straight to the client in the load balancer's name. A packet from a real
// server's port is
//
//     from a server for which the port may send   treated as if that server had sent it, but its loads are ignored
//     from the real server's own address          forwarded as the site's own traffic, mostly to the load balancer
//     from any other address                      dropped
//
// Packets from outside the site to a real server's own address are dropped: clients only ever send to the load
// balancer.
control RealServers(in headers_t hdr, inout metadata_t meta) {
    DIRECT_COUNTER(down)

    action allow_sender(bit<1> from_real_server) {
        COUNT(down)
        meta.from_real_server = from_real_server;
    }

    action foreign_source() {
        meta.REAL_SERVER_VERDICT = DROP_REAL_SERVER_SOURCE;
    }

    // A machine may be both load balancer and real server. It then also sends as itself, and its loads count.
    table sender {
        key = {
            meta.ingress_port: exact @name("ingress_port");
            meta.sid: exact @name("sid");
        }
        actions = { allow_sender; @defaultonly foreign_source; }
        const default_action = foreign_source();
        counters = down;
        size = REAL_SERVER_SENDERS;
    }

    port_t real_server_port;
    bit<1> is_real_server;

    action set_real_server_port(port_t port) {
        real_server_port = port;
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
        meta.REAL_SERVER_VERDICT = DROP_REAL_SERVER_EXTERNAL;
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

    apply {
        is_real_server = 0;
        real_server_port = 0;
        if (meta.role == ROLE_REAL_SERVER && meta.direction == Direction.DOWN) {
            sender.apply();
        } else if (meta.role != ROLE_SERVER) {
            if (hdr.ipv4.isValid()) {
                source4.apply();
            } else {
                source6.apply();
            }
            if (meta.role == ROLE_REAL_SERVER) {
                if (is_real_server == 0 || real_server_port != meta.ingress_port) {
                    foreign_source();
                }
            } else if (is_real_server == 1) {
                meta.REAL_SERVER_VERDICT = DROP_SPOOFED_SOURCE; // otherwise a load balancer would respond to the real server
            } else if (meta.direction != Direction.UP) {
                if (hdr.ipv4.isValid()) {
                    destination4.apply();
                } else {
                    destination6.apply();
                }
            }
        }
    }
}
