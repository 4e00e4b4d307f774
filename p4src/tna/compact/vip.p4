// SPDX-License-Identifier: Apache-2.0
// Recognises the packets of VIPs and their direction, as control/vip.p4 does. All lookups of addresses begin at once.
#ifndef FRONTAGE_TNA_COMPACT_VIP_P4
#define FRONTAGE_TNA_COMPACT_VIP_P4

control Vip(inout headers_t hdr, inout metadata_t meta) {
    action set_vip(vip_id_t vip_id) {
        meta.update_tcp = 1; // without effect on datagrams
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

    action from_server(sid_t sid, vip_id_t vip_id, bit<16> slot, bit<1> active, bit<8> score_class) {
        meta.update_tcp = 1;
        meta.direction = Direction.DOWN;
#ifdef ONE_PROTOCOL
        hdr.tcp.ck = 0;
#endif
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

#ifndef ONE_PROTOCOL
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

#ifdef FOUR_PIPES
    // The cookie of another switch's server has a rank, too.
    action from_elsewhere() {
        meta.cookie_word = hdr.ipv6.src[63:0];
    }
#else
#define from_elsewhere NoAction
#endif

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

#endif

    apply {
        if (HAS_SERVICE_PORTS && hdr.ipv4.isValid()) {
            if (vip4.apply().miss) {
                dip4.apply();
            }
        } else if (HAS_SERVICE_PORTS) {
            if (vip6.apply().miss) {
#ifdef ONE_PROTOCOL
                dip6.apply();
#else
                if (hdr.tcp.isValid()) {
                    dip6.apply();
                } else {
                    if (cookie_address.apply().miss) {
                        quic_dip6.apply();
                    }
                }
#endif
            }
        }
    }
}

control Addresses(in headers_t hdr, inout metadata_t meta) {
    action no_service() {
        meta.has_no_service = 1;
    }

    @stage(1) table address4 {
        key = { hdr.ipv4.dst: exact @name("dst"); }
        actions = { no_service; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    @stage(1) table address6 {
        key = { hdr.ipv6.dst: exact @name("dst"); }
        actions = { no_service; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

#ifndef ONE_PROTOCOL
    @stage(2) table cookie_prefix {
        key = { hdr.ipv6.dst[127:64]: exact @name("prefix"); }
        actions = { no_service; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }
#endif

    apply {
        if (hdr.ipv4.isValid()) {
            address4.apply();
        } else {
            address6.apply();
#ifndef ONE_PROTOCOL
            cookie_prefix.apply();
#endif
        }
    }
}

control Policy(inout metadata_t meta) {
    action set_policy(bit<8> policy, bit<16> flow_unit, bit<16> tree_base, bit<8> tree_depth, bit<16> pool_size,
                      bit<16> maglev_mask) {
        meta.policy = policy;
        meta.flow_unit = flow_unit;
        meta.tree_base = tree_base;
        meta.tree_depth = tree_depth;
        meta.pool_size = pool_size;
        meta.maglev_mask = maglev_mask;
    }

    action no_server() {
        meta.has_no_policy = 1;
    }

    table policy {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { set_policy; no_server; }
        const default_action = no_server();
        size = VIPS;
    }

    apply {
        if (meta.direction == Direction.UP || meta.direction == Direction.DOWN) {
            policy.apply();
        }
    }
}

#endif
