// SPDX-License-Identifier: Apache-2.0
// The TCP cookie of both directions: control/retrieve.p4 and control/masking.p4.
#ifndef FRONTAGE_TNA_COMPACT_COOKIE_P4
#define FRONTAGE_TNA_COMPACT_COOKIE_P4

#ifdef FOUR_PIPES
#define TSECR meta.cookie_code // its lower half
#define TWEAK hdr.fold.connection_hash
#else
#define TSECR hdr.tcp_timestamp.tsecr
#define TWEAK meta.connection_hash
#endif

// Opens what may be a cookie in any packet, before it is known whether a client sent it.
control Retrieve(in headers_t hdr, inout metadata_t meta) {
    @name("open") CookieCipher() open;

    // The code of a cookie is in TSecr: epoch (1) | left half (8) | right half (7).
    action split_code() {
        IN_HASH {
            meta.opened.a = 1w0 ++ TSECR[6:0];
            meta.opened.b = TSECR[14:7];
        }
    }

    action compute_indices() {
        IN_HASH {
            meta.opened.index0 = TSECR[14:7] ^ TWEAK[7:0];
            meta.opened.index1 = (1w0 ++ TSECR[6:0]) ^ TWEAK[15:8];
            meta.opened.index2 = TSECR[14:7] ^ TWEAK[23:16];
            meta.opened.index3 = (1w0 ++ TSECR[6:0]) ^ TWEAK[31:24];
        }
    }

    apply {
        split_code();
        compute_indices();
        open.apply(meta.opened, TSECR[15:15], meta.is_opened);
    }
}

control Masking(inout headers_t hdr, inout metadata_t meta) {
    @name("seal") CookieCipher() seal;

    action set_active_key(bit<1> epoch, bit<16> clock_offset) {
        meta.sealing_epoch = epoch;
        meta.sealing_clock_offset = clock_offset;
    }

    // Without a key there is no cookie, so later packets go by the hash. TSval still carries the server's clock.
    action no_key() {
        meta.sealing_epoch = 0;
        meta.sealing_clock_offset = 0;
    }

    table active_key {
        actions = { set_active_key; no_key; }
        default_action = no_key();
    }

    action compute_indices() {
        IN_HASH {
            meta.sealed.index0 = (1w0 ++ meta.sid[3:0] ++ 3w0) ^ meta.connection_hash[31:24];
            meta.sealed.index1 = meta.sid[11:4] ^ meta.connection_hash[23:16];
            meta.sealed.index2 = (1w0 ++ meta.sid[3:0] ++ 3w0) ^ meta.connection_hash[15:8];
            meta.sealed.index3 = meta.sid[11:4] ^ meta.connection_hash[7:0];
        }
    }

    action write_clock() {
        hdr.tcp_timestamp.tsval[31:16] = hdr.tcp_timestamp.tsval[31:16] + meta.sealing_clock_offset;
    }

    // After the rounds, the last two indices are the halves XOR bytes of the tweak.
    action write_code() {
        IN_HASH {
            hdr.tcp_timestamp.tsval[15:0] = meta.sealing_epoch ++ (meta.sealed.index3 ^ meta.connection_hash[7:0])
                ++ (meta.sealed.index2[6:0] ^ meta.connection_hash[14:8]);
        }
    }

    action write_no_code() {
        hdr.tcp_timestamp.tsval[15:0] = 0;
    }

    apply {
        active_key.apply();
        compute_indices();
        seal.apply(meta.sealed, meta.sealing_epoch, meta.is_sealed);
#ifndef ONE_PROTOCOL
        if (meta.direction == Direction.DOWN && hdr.tcp.isValid()) {
            hdr.tcp.ck = 0;
        }
#endif
        if (meta.direction == Direction.DOWN && HAS_TCP_REPORT) {
            write_clock();
            if (meta.is_sealed == 1) {
                write_code();
            } else {
                write_no_code();
            }
        }
    }
}

#endif
