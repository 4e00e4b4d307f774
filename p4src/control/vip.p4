// SPDX-License-Identifier: Apache-2.0
// Recognises the packets of VIPs and their direction, and looks up the VIP's policy. A server's packet gets the VIP's
// source address.
control Vip(inout headers_t hdr, inout metadata_t meta) {
    TransportLengths() lengths;
    Transport() transport;
    length_faults_t length_faults;

    action set_vip(vip_id_t vip_id) {
        meta.direction = Direction.UP;
        meta.vip_id = vip_id;
    }

    table vip4 {
        key = {
            hdr.ipv4.dst: exact @name("dst");
            meta.protocol: exact @name("protocol");
            hdr.ports.dst_port: exact @name("dst_port");
        }
        actions = { set_vip; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    table vip6 {
        key = {
            hdr.ipv6.dst: exact @name("dst");
            meta.protocol: exact @name("protocol");
            hdr.ports.dst_port: exact @name("dst_port");
        }
        actions = { set_vip; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    // Cookie addresses: the /64 of a QUIC service, with an interface id that names the server.
    action set_cookie_address(vip_id_t vip_id) {
        set_vip(vip_id);
        meta.at_cookie_address = 1;
        meta.cookie_word = hdr.ipv6.dst[63:0];
    }

    table cookie_address {
        key = {
            hdr.ipv6.dst[127:64]: exact @name("prefix");
            hdr.ports.dst_port: exact @name("dst_port");
        }
        actions = { set_cookie_address; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    // Addresses of VIPs, cookie prefixes and local tunnel endpoints: packets that matched no service above are
    // dropped.
    action no_service() {
        meta.VIP_VERDICT = DROP_VIP_NO_SERVICE;
    }

    table address4 {
        key = { hdr.ipv4.dst: exact @name("dst"); }
        actions = { no_service; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    table address6 {
        key = { hdr.ipv6.dst: exact @name("dst"); }
        actions = { no_service; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    table cookie_prefix {
        key = { hdr.ipv6.dst[127:64]: exact @name("prefix"); }
        actions = { no_service; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    action from_server(sid_t sid, vip_id_t vip_id, bit<16> slot, bit<1> active, bit<8> score_class) {
        meta.direction = Direction.DOWN;
        meta.sid = sid;
        meta.vip_id = vip_id;
        meta.slot = slot;
        meta.active = active;
        meta.score_class = score_class;
    }

    DIRECT_COUNTER(down4)

    action from_server4(sid_t sid, vip_id_t vip_id, bit<16> slot, bit<1> active, bit<8> score_class, ipv4_t vip,
                        bit<16> vip_port) {
        COUNT(down4)
        meta.cookie_word = 0; // there are no cookies in IPv4 addresses
        from_server(sid, vip_id, slot, active, score_class);
        hdr.ipv4.src = vip;
        hdr.ports.src_port = vip_port;
    }

    DIRECT_COUNTER(down6)

    action from_server6(sid_t sid, vip_id_t vip_id, bit<16> slot, bit<1> active, bit<8> score_class, ipv6_t vip,
                        bit<16> vip_port) {
        COUNT(down6)
        from_server(sid, vip_id, slot, active, score_class);
        hdr.ipv6.src = vip;
        hdr.ports.src_port = vip_port;
    }

    DIRECT_COUNTER(down_quic6)

    // A QUIC server may send from any address of its /64.
    action from_quic_server6(sid_t sid, vip_id_t vip_id, bit<16> slot, bit<1> active, bit<8> score_class, ipv6_t vip,
                             bit<16> vip_port, bit<64> dip_id, bit<64> prefix) {
        COUNT(down_quic6)
        meta.cookie_word = hdr.ipv6.src[63:0];
        meta.dip_difference = dip_id;
        meta.cookie_prefix = prefix;
        from_server(sid, vip_id, slot, active, score_class);
        hdr.ipv6.src = vip;
        hdr.ports.src_port = vip_port;
    }

    table dip4 {
        key = {
            hdr.ipv4.src: exact @name("src");
            meta.protocol: exact @name("protocol");
            hdr.ports.src_port: exact @name("src_port");
        }
        actions = { from_server4; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = down4;
        size = SERVERS;
    }

    table dip6 {
        key = {
            hdr.ipv6.src: exact @name("src");
            hdr.ports.src_port: exact @name("src_port");
        }
        actions = { from_server6; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = down6;
        size = SERVERS;
    }

    // Servers of other switches send from cookie addresses, too.
    action from_elsewhere() {
        meta.cookie_word = hdr.ipv6.src[63:0];
    }

    table quic_dip6 {
        key = {
            hdr.ipv6.src[127:64]: exact @name("prefix");
            hdr.ports.src_port: exact @name("src_port");
        }
        actions = { from_quic_server6; @defaultonly from_elsewhere; }
        const default_action = from_elsewhere();
        counters = down_quic6;
        size = SERVERS;
    }

    action set_policy(bit<8> policy, bit<16> flow_unit, bit<16> tree_base, bit<8> tree_depth, bit<16> pool_size,
                      bit<16> maglev_mask) {
        meta.policy = policy;
        meta.flow_unit = flow_unit;
        meta.tree_base = tree_base;
        meta.tree_depth = tree_depth;
        meta.pool_size = pool_size;
        meta.maglev_mask = maglev_mask;
    }

    bit<8> policy_verdict;

    action no_server() {
        policy_verdict = DROP_VIP_NO_SERVER;
    }

    table policy {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { set_policy; no_server; }
        const default_action = no_server();
        size = VIPS;
    }

    apply {
        lengths.apply(hdr, meta, length_faults);
        if (hdr.ipv4.isValid()) {
            if (hdr.tcp.isValid() || hdr.udp.isValid()) {
                if (vip4.apply().miss) {
                    dip4.apply();
                }
            }
            if (meta.direction == Direction.TRANSIT) {
                address4.apply();
            }
        } else {
            if (hdr.tcp.isValid() || hdr.udp.isValid()) {
                if (vip6.apply().miss) {
                    if (hdr.tcp.isValid()) {
                        dip6.apply();
                    } else {
                        if (cookie_address.apply().miss) {
                            quic_dip6.apply();
                        }
                    }
                }
            }
            if (meta.direction == Direction.TRANSIT) {
                if (address6.apply().miss) {
                    cookie_prefix.apply();
                }
            }
        }

        policy_verdict = VERDICT_CONTINUE;
        if (meta.direction != Direction.TRANSIT) {
            policy.apply();
        }
        if (meta.VIP_VERDICT != VERDICT_CONTINUE || meta.direction != Direction.TRANSIT) {
            transport.apply(hdr, meta, length_faults);
        }
        if (meta.VIP_VERDICT == VERDICT_CONTINUE) {
            meta.VIP_VERDICT = policy_verdict;
        }
    }
}
