// SPDX-License-Identifier: Apache-2.0
// Reacting phase towards the client (CloudCookie, IV.B and VI.b): replaces the dynamic cookie with the static one.
// So neither loads nor flow sizes leave the data centre, and TSval never goes backwards (docs/cookie.md).
//
// Ingress rewrites the source of a QUIC server's packet to the VIP. For a client that migrated to the server's cookie
// address, this control rewrites it to that address, because clients drop packets from an address that they did not
// choose (RFC 9000, 9).
control Masking(inout headers_t hdr, inout metadata_t meta, in sid_t sid) {
    CookieCipher() seal;
    bit<1> sealing_epoch;
    bit<16> sealing_clock_offset;

    action set_active_key(bit<1> epoch, bit<16> clock_offset) {
        sealing_epoch = epoch;
        sealing_clock_offset = clock_offset;
    }

    // Without a key there is no cookie, so later packets go by the hash. TSval still carries the server's clock.
    action no_key() {
        sealing_epoch = 0;
        sealing_clock_offset = 0;
    }

    table active_key {
        actions = { set_active_key; no_key; }
        default_action = no_key();
    }

    action split_sid() {
        IN_HASH {
            meta.sealed.a = sid[11:4];
            meta.sealed.b = 1w0 ++ sid[3:0] ++ 3w0;
        }
    }

    action compute_indices() {
        IN_HASH {
            meta.sealed.index0 = (1w0 ++ sid[3:0] ++ 3w0) ^ meta.connection_hash[31:24];
            meta.sealed.index1 = sid[11:4] ^ meta.connection_hash[23:16];
            meta.sealed.index2 = (1w0 ++ sid[3:0] ++ 3w0) ^ meta.connection_hash[15:8];
            meta.sealed.index3 = sid[11:4] ^ meta.connection_hash[7:0];
        }
    }

    action write_clock() {
        hdr.tcp_timestamp.tsval[31:16] = hdr.tcp_timestamp.tsval[31:16] + sealing_clock_offset;
    }

    action write_code() {
        IN_HASH { hdr.tcp_timestamp.tsval[15:0] = sealing_epoch ++ meta.sealed.a ++ meta.sealed.b[6:0]; }
    }

    action write_no_code() {
        hdr.tcp_timestamp.tsval[15:0] = 0;
    }

    // The static cookie of each server and epoch: the interface id of its cookie address.
    action rewrite_source(bit<64> interface_id) {
        hdr.ipv6.src = meta.cookie_prefix ++ interface_id;
    }

    table static_cookie {
        key = {
            meta.quic_cookie.epoch: exact @name("epoch");
            sid: exact @name("sid");
        }
        actions = { rewrite_source; NoAction; }
        const default_action = NoAction();
        size = STATIC_COOKIES;
    }

    apply {
        if (meta.direction == Direction.DOWN && hdr.tcp.isValid() && hdr.tcp.ck == 1) {
            hdr.tcp.ck = 0;
            if (hdr.tcp_timestamp.isValid()) {
                active_key.apply();
                bit<1> keyed = 0;
                split_sid();
                compute_indices();
                seal.apply(meta.sealed, sealing_epoch, keyed);
                write_clock();
                if (keyed == 1) {
                    write_code();
                } else {
                    write_no_code();
                }
            }
        } else if (meta.direction == Direction.DOWN && meta.from_cookie_address == 1) {
            static_cookie.apply();
        }
    }
}
