// SPDX-License-Identifier: Apache-2.0
// Region of the client: a group of prefixes for which the same sites are best (docs/mapping.md). Steering and demand
// use it. The lookup is for packets that come directly from the client and do not name a server: a SYN, a segment
// without timestamps, or a long header to an address that all sites share.
control Region(in headers_t hdr, inout metadata_t meta) {
    action set_region(bit<16> region) {
        meta.region = region;
    }

    table client4 {
        key = { hdr.ipv4.src: lpm @name("src"); }
        actions = { set_region; NoAction; }
        const default_action = NoAction();
        size = CLIENT_PREFIXES;
    }

    table client6 {
        key = { hdr.ipv6.src: lpm @name("src"); }
        actions = { set_region; NoAction; }
        const default_action = NoAction();
        size = CLIENT_PREFIXES;
    }

    apply {
        meta.is_first_flight = 0;
        meta.region = 0;
        bit<1> names_no_server = 0;
        if (meta.direction == Direction.UP && meta.from_tunnel == 0 && meta.at_cookie_address == 0) {
            if (hdr.quic_long.isValid() || (hdr.tcp.isValid() && (hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)) {
                meta.is_first_flight = 1;
                names_no_server = 1;
            } else if (hdr.tcp.isValid() && !hdr.tcp_timestamp.isValid() && !IS_ERROR) {
                names_no_server = 1;
            }
        }
        if (names_no_server == 1) {
            if (hdr.ipv4.isValid()) {
                client4.apply();
            } else {
                client6.apply();
            }
        }
    }
}
