// QDSR's real servers (QDSR, 3 and 6.1; docs/real-servers.md): a load balancer, which is a server of a VIP, has them send streams of its connections. What
// comes from a real server's port is
//
//   a packet of a server for which it may send     the VIP's from here on, as if that server had sent it; its loads are second-hand
//   from its own address                           the site's own traffic: its connection with the load balancer, above all
//   anything else                                  dropped
//
// and nothing from outside reaches a real server's own address: it has no uplink, the load balancer has.
control RealServers(in headers_t hdr, inout metadata_t meta) {
    action allow_sender(bit<1> from_real_server) {
        meta.from_real_server = from_real_server;
    }

    action foreign_source() {
        meta.drop = DROP_REAL_SERVER_SOURCE;
    }

    // Where load balancer and real server are one machine, it is itself too: then its loads are its own.
    DIRECT_COUNTER(down)
    table sender {
        key = {
            meta.ingress_port: exact @name("ingress_port");
            meta.sid: exact @name("sid");
        }
        actions = { allow_sender; foreign_source; }
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
        meta.drop = DROP_REAL_SERVER_EXTERNAL;
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
                meta.drop = DROP_SPOOFED_SOURCE; // or a load balancer would answer to the real server
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
