// SPDX-License-Identifier: Apache-2.0
// Recognises the packets of QUIC services and their direction, as control/vip.p4 does. All lookups of addresses begin at once.
#ifndef FRONTAGE_TNA_COMPACT_QUIC_VIP_P4
#define FRONTAGE_TNA_COMPACT_QUIC_VIP_P4

control QuicVip(inout headers_t hdr, inout metadata_t meta) {
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
        from_server(sid, vip_id, slot, active, score_class);
        hdr.ipv4.src = vip;
        hdr.ports.src_port = vip_port;
    }

    DIRECT_COUNTER(down_quic6)

    // A QUIC server may send from any address of its /64.
    action from_quic_server6(sid_t sid, vip_id_t vip_id, bit<16> slot, bit<1> active, bit<8> score_class, ipv6_t vip,
                             bit<16> vip_port, bit<64> dip_id, bit<64> prefix) {
        COUNT(down_quic6)
        meta.cookie_word = hdr.ipv6.src[63:0];
        meta.dip_difference = hdr.ipv6.src[63:0] ^ dip_id;
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

    table quic_dip6 {
        key = {
            hdr.ipv6.src[127:64]: exact @name("prefix");
            hdr.ports.src_port: exact @name("src_port");
        }
        actions = { from_quic_server6; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = down_quic6;
        size = SERVERS;
    }

    apply {
        if (hdr.udp.isValid() && hdr.ipv4.isValid()) {
            if (vip4.apply().miss) {
                dip4.apply();
            }
        } else if (hdr.udp.isValid()) {
            if (vip6.apply().miss) {
                if (cookie_address.apply().miss) {
                    quic_dip6.apply();
                }
            }
        }
    }
}

// Addresses of VIPs, and cookie prefixes.
control QuicAddresses(in headers_t hdr, inout metadata_t meta) {
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

    @stage(1) table cookie_prefix {
        key = { hdr.ipv6.dst[127:64]: exact @name("prefix"); }
        actions = { no_service; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            address4.apply();
        } else {
            if (address6.apply().miss) {
                cookie_prefix.apply();
            }
        }
    }
}

// The source is the server's own address.
control OwnAddress(inout metadata_t meta) {
    action own_address() {
        meta.is_from_dip = 1;
    }

    @hidden table difference {
        key = { meta.dip_difference: ternary; }
        actions = { own_address; NoAction; }
        const entries = { 0: own_address(); }
        const default_action = NoAction();
        size = 1;
    }

    apply {
        difference.apply();
    }
}

#endif
