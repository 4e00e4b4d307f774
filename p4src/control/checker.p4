// SPDX-License-Identifier: Apache-2.0
// Health checks (docs/health.md). A check takes the path of a client, and reaches one server at the address of the
// service: the low 12 bits of its source port are the SID, and the highest bit is set. Only the checker's addresses, on
// the checker's port, mark checks; everything else is an ordinary client. A check changes neither a connection table nor
// a tournament tree, and does not count as a connection.
control Checker(in headers_t hdr, inout metadata_t meta) {
    action is_check() {
        meta.is_check = 1;
    }

    // Sources of checks. A spoofed source on another port does not match.
    table source4 {
        key = {
            meta.ingress_port: exact @name("ingress_port");
            hdr.ipv4.src: exact @name("src");
        }
        actions = { is_check; NoAction; }
        const default_action = NoAction();
        size = CHECKERS;
    }

    table source6 {
        key = {
            meta.ingress_port: exact @name("ingress_port");
            hdr.ipv6.src: exact @name("src");
        }
        actions = { is_check; NoAction; }
        const default_action = NoAction();
        size = CHECKERS;
    }

    // Destinations of answers to checks: the SYN-ACK of a server without an agent must not take an entry of the
    // connection table.
    table destination4 {
        key = { hdr.ipv4.dst: exact @name("dst"); }
        actions = { is_check; NoAction; }
        const default_action = NoAction();
        size = CHECKERS;
    }

    table destination6 {
        key = { hdr.ipv6.dst: exact @name("dst"); }
        actions = { is_check; NoAction; }
        const default_action = NoAction();
        size = CHECKERS;
    }

    action name_server() {
        IN_HASH { meta.candidate_sid = 4w0 ++ hdr.ports.src_port[11:0]; }
    }

    apply {
        if (meta.direction == Direction.UP && hdr.ports.src_port[15:15] == 1 && meta.at_cookie_address == 0) {
            if (hdr.ipv4.isValid()) {
                source4.apply();
            } else {
                source6.apply();
            }
            if (meta.is_check == 1) {
                name_server();
                meta.candidate_found = 1;
                meta.outcome = OUTCOME_CHECK;
            }
        } else if (meta.direction == Direction.DOWN && hdr.ports.dst_port[15:15] == 1) {
            if (hdr.ipv4.isValid()) {
                destination4.apply();
            } else {
                destination6.apply();
            }
        }
    }
}
