// SPDX-License-Identifier: Apache-2.0
// The second hop of TCP packets without a cookie (docs/second-hop.md). A switch that does not know a connection sends its
// packet to the server of the hash. If other servers had the slot of Maglev's table before, or will have it, the switch
// marks the packet. A server that does not know the connection refuses a marked packet: its agent exchanges the addresses
// and ports, and sends the packet back. The switch sends it to the next of these servers, and remembers this server in the
// connection table.

// A refused packet is a packet from a server, to which Vip gave the VIP's address as source. Turns it into the client's
// packet again.
control Refusal(inout headers_t hdr, inout metadata_t meta) {
    action exchange4() {
        ipv4_t vip = hdr.ipv4.src;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = vip;
    }

    action exchange6() {
        ipv6_t vip = hdr.ipv6.src;
        hdr.ipv6.src = hdr.ipv6.dst;
        hdr.ipv6.dst = vip;
    }

    action exchange_ports() {
        bit<16> vip_port = hdr.ports.src_port;
        hdr.ports.src_port = hdr.ports.dst_port;
        hdr.ports.dst_port = vip_port;
        meta.refusing_sid = meta.sid;
        meta.is_refused = 1;
        meta.direction = Direction.UP;
    }

    apply {
        if (meta.direction == Direction.DOWN && hdr.tcp.isValid() && hdr.tcp.second_hop == 1) {
            if ((hdr.tcp.flags & TCP_SYN) != 0 && meta.VIP_VERDICT == VERDICT_CONTINUE) {
                meta.VIP_VERDICT = DROP_REFUSED_SYN; // no switch marks a SYN
            }
            if (hdr.ipv4.isValid()) {
                exchange4();
            } else {
                exchange6();
            }
            exchange_ports();
        }
    }
}

// Finds the server of a refused packet, or whether another server can follow the first one.
control SecondHop(in headers_t hdr, inout metadata_t meta) {
    bit<16> slot;
    bit<8> number;
    bit<8> left; // how many of the others are still to be tried
    sid_t first_sid;
    sid_t second_sid;
    sid_t third_sid;

    // Servers that had a slot of Maglev's table before, or will have it, in the order in which they are tried.
    action set_others(bit<8> count, sid_t first, sid_t second, sid_t third) {
        number = count;
        first_sid = first;
        second_sid = second;
        third_sid = third;
    }

    table others {
        key = {
            meta.vip_id: exact @name("vip_id");
            slot: exact @name("slot");
        }
        actions = { set_others; NoAction; }
        const default_action = NoAction();
        size = SECOND_HOP_SLOTS;
    }

    apply {
        number = 0;
        first_sid = 0;
        second_sid = 0;
        third_sid = 0;
        if (!IS_CHECK && meta.direction == Direction.UP && meta.is_new_connection == 0
            && !COMPLETES_HANDSHAKE && (meta.from_tunnel == 0 || IS_FROM_SERVER_TUNNEL) && !hdr.tcp_timestamp.isValid()) {
            slot = meta.connection_hash[15:0] & meta.maglev_mask;
            others.apply();
        }
        left = number;
        if (number != 0 && meta.hash_found == 0) { // all servers drain
            meta.hash_sid = first_sid;
            meta.hash_found = 1;
            left = number - 1;
        }
        if (meta.is_refused == 1) {
            // After the last server, and after a change of the tables, the server of the hash decides.
            meta.next_sid = meta.hash_sid;
            if (number != 0) {
                if (meta.refusing_sid == first_sid) {
                    left = number - 1;
                    if (left != 0) {
                        meta.next_sid = second_sid;
                    }
                } else if (number > 1 && meta.refusing_sid == second_sid) {
                    left = number - 2;
                    if (left != 0) {
                        meta.next_sid = third_sid;
                    }
                } else if (number > 2 && meta.refusing_sid == third_sid) {
                    left = 0;
                } else {
                    left = number;
                    meta.next_sid = first_sid;
                }
            }
            if (left > 1) {
                meta.can_move = 1;
            }
        } else if (left != 0) {
            meta.can_move = 1;
        }
    }
}

// Marks a packet that its server may refuse, and clears the mark of clients. The server in the connection table may refuse,
// too: an earlier packet may still be on its way from there to a further server.
control SecondHopMark(inout headers_t hdr, in metadata_t meta) {
    apply {
        hdr.tcp.second_hop = 0;
        if (meta.can_move == 1 && (meta.outcome == OUTCOME_HASHED_NO_COOKIE || meta.outcome == OUTCOME_RETRIEVED_TABLE
            || meta.outcome == OUTCOME_SECOND_HOP)) {
            hdr.tcp.second_hop = 1;
        }
    }
}
