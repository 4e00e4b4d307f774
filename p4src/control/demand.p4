// SPDX-License-Identifier: Apache-2.0
// Demand (Auspice, 1.2; docs/demand.md): counts handshakes by service and client region, at the site where the
// client's packets enter, whether or not the handshake succeeds.
//
// A handshake begins with a SYN, or with a datagram that may hold an Initial (RFC 9000, 14.1) and has a connection id
// that the client chose. A retransmission counts once: it is recognised by its connection and by TCP's initial
// sequence number or part of the connection id, unless another handshake has overwritten the entry since.
control Demand(in headers_t hdr, inout metadata_t meta) {
    RecentHandshakes() recent;
    DemandCounter() handshakes;
    NewClient() new_client;

    bit<32> cell;
    bit<16> limit;
    bit<16> distance; // to the limit
    bit<32> region;

    // Cell base + r counts region r, for r from 1 to regions - 1. Cell base counts all other clients.
    action set_counter_range(bit<32> base, bit<16> regions) {
        cell = base;
        limit = regions;
    }

    // Some targets compare fields only with constants.
    action compare_region() {
        distance = limit |-| meta.region;
    }

    // An ALU may not add fields of different sizes.
    action widen_region() {
        IN_HASH { region = 16w0 ++ meta.region; }
    }

    action add_region() {
        cell = cell + region;
    }

    table service {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { set_counter_range; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    apply {
        cell = 0;
        limit = 0;
        bit<32> fingerprint = meta.connection_hash;
        bit<1> is_handshake = 0;
        if (meta.is_first_flight == 1 && hdr.tcp.isValid()) {
            is_handshake = 1;
            fingerprint = fingerprint ^ hdr.tcp.seq;
        } else if (meta.is_first_flight == 1 && meta.quic_cookie.kind == QuicCookie.NONE
            && meta.may_hold_initial == 1) {
            is_handshake = 1;
            if (hdr.connection_id.isValid()) {
                fingerprint = fingerprint ^ hdr.connection_id.word[31:0];
            }
        }

        if (is_handshake == 1) {
            if (service.apply().hit) {
                compare_region();
                if (distance != 0) {
                    widen_region();
                    add_region();
                }
                bit<1> is_duplicate;
                recent.apply(meta.connection.index, fingerprint, meta.now, is_duplicate);
                if (is_duplicate == 0) {
                    handshakes.apply(cell);
                    if (meta.region == 0) {
                        bit<8> version = 6;
                        bit<48> prefix = hdr.ipv6.src[127:80];
                        if (hdr.ipv4.isValid()) {
                            version = 4;
                            prefix = 24w0 ++ hdr.ipv4.src[31:8];
                        }
                        // Applied in one place, because each use would be a digest of its own.
                        new_client.apply(meta, version, prefix);
                    }
                }
            }
        }
    }
}
