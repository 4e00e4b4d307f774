// Which packets are a VIP's, in which direction, and what the VIP's policy is.
control Vip(inout headers_t hdr, inout metadata_t meta) {
    action set_vip(vip_id_t vip_id) {
        meta.direction = Direction.UP;
        meta.vip_id = vip_id;
    }

    table vip4 {
        key = {
            hdr.ipv4.dst: exact @name("dst");
            hdr.tcp.dst_port: exact @name("dst_port");
        }
        actions = { set_vip; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    table vip6 {
        key = {
            hdr.ipv6.dst: exact @name("dst");
            hdr.tcp.dst_port: exact @name("dst_port");
        }
        actions = { set_vip; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    // What else is sent to the address of a VIP has no server to go to.
    action no_service() {
        meta.drop = DROP_VIP_NO_SERVICE;
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

    action from_server4(sid_t sid, vip_id_t vip_id, bit<16> slot, bit<1> active, bit<8> score_class, ipv4_t vip, bit<16> vip_port) {
        meta.direction = Direction.DOWN;
        meta.sid = sid;
        meta.vip_id = vip_id;
        meta.slot = slot;
        meta.active = active;
        meta.score_class = score_class;
        hdr.ipv4.src = vip;
        hdr.tcp.src_port = vip_port;
    }

    action from_server6(sid_t sid, vip_id_t vip_id, bit<16> slot, bit<1> active, bit<8> score_class, ipv6_t vip, bit<16> vip_port) {
        meta.direction = Direction.DOWN;
        meta.sid = sid;
        meta.vip_id = vip_id;
        meta.slot = slot;
        meta.active = active;
        meta.score_class = score_class;
        hdr.ipv6.src = vip;
        hdr.tcp.src_port = vip_port;
    }

    DIRECT_COUNTER(down4)
    table dip4 {
        key = {
            hdr.ipv4.src: exact @name("src");
            hdr.tcp.src_port: exact @name("src_port");
        }
        actions = { from_server4; NoAction; }
        const default_action = NoAction();
        counters = down4;
        size = SERVERS;
    }

    DIRECT_COUNTER(down6)
    table dip6 {
        key = {
            hdr.ipv6.src: exact @name("src");
            hdr.tcp.src_port: exact @name("src_port");
        }
        actions = { from_server6; NoAction; }
        const default_action = NoAction();
        counters = down6;
        size = SERVERS;
    }

    action set_policy(bit<8> policy, bit<16> flow_unit, bit<16> tree_base, bit<8> tree_depth, bit<16> pool_size, bit<16> maglev_mask) {
        meta.policy = policy;
        meta.flow_unit = flow_unit;
        meta.tree_base = tree_base;
        meta.tree_depth = tree_depth;
        meta.pool_size = pool_size;
        meta.maglev_mask = maglev_mask;
    }

    action no_server() {
        meta.drop = DROP_VIP_NO_SERVER;
    }

    table policy {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { set_policy; no_server; }
        const default_action = no_server();
        size = VIPS;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            if (hdr.tcp.isValid()) {
                if (!vip4.apply().hit) {
                    dip4.apply();
                }
            }
            if (meta.direction == Direction.TRANSIT) {
                address4.apply();
            }
        } else {
            if (hdr.tcp.isValid()) {
                if (!vip6.apply().hit) {
                    dip6.apply();
                }
            }
            if (meta.direction == Direction.TRANSIT) {
                address6.apply();
            }
        }

        if (meta.drop != DROP_NONE && meta.fragment == 1) {
            meta.drop = DROP_VIP_FRAGMENT;
        } else if ((meta.drop != DROP_NONE || meta.direction != Direction.TRANSIT) && meta.unparsed != DROP_NONE) {
            meta.drop = meta.unparsed;
        } else if (meta.direction == Direction.UP
                   && ((hdr.ipv4.isValid() && hdr.ipv4.total_length < ((bit<16>)hdr.ipv4.ihl + (bit<16>)hdr.tcp.data_offset) << 2)
                       || (hdr.ipv6.isValid() && hdr.ipv6.payload_length < (bit<16>)hdr.tcp.data_offset << 2))) {
            meta.drop = DROP_TCP_HEADER; // the rest is padding of the frame
        } else if (meta.direction == Direction.UP && ((hdr.tcp.flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) == 0
                   || ((hdr.tcp.flags & TCP_SYN) != 0 && (hdr.tcp.flags & (TCP_FIN | TCP_RST)) != 0))) {
            meta.drop = DROP_TCP_FLAGS;
        } else if (meta.direction == Direction.DOWN && meta.role != ROLE_SERVER) {
            meta.drop = DROP_SPOOFED_SOURCE;
        } else if (meta.direction != Direction.TRANSIT) {
            policy.apply();
        }
    }
}
