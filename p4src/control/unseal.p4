// What a QUIC packet carries: on the way up a cookie address's interface id, or else the connection id; on the way down the interface id that the
// server sends from. One cipher opens whichever it is. The leading bits, in the clear, keep the kinds apart (docs/cookie.md). In transit, between a server
// and its edge switch, only the dynamic form is opened, for its RPT.
control Unseal(in headers_t hdr, inout metadata_t meta) {
    Cookie6Cipher() open;

    apply {
        bit<1> sealed = 1;
        bit<64> word = meta.interface_id;
        meta.carried.what = Carried.NOTHING;
        if (meta.direction == Direction.TRANSIT) {
            word = hdr.ipv6.src[63:0];
            if (!hdr.ipv6.isValid() || meta.role != ROLE_SERVER || word[63:61] != 0b011) {
                sealed = 0;
            }
        } else if (meta.direction == Direction.UP && meta.at_cookie_address == 0) {
            word = hdr.connection_id.word;
            if (!hdr.connection_id.isValid() || hdr.connection_id.length != (bit<5>)(CID_LENGTH - 1)) {
                sealed = 0; // a foreign one
            } else if (hdr.connection_id.config == CID_PLAIN) {
                sealed = 0;
                meta.carried.what = Carried.PLAIN_CID;
                meta.carried.sid = word[63:48];
            } else if (hdr.connection_id.config != 2w0 ++ word[60:60] || word[63:61] != 0b100) {
                sealed = 0;
            }
        } else if (word[63:62] != 0b01 || word == meta.dip_id) {
            sealed = 0;
        }

        if (sealed == 1) {
            bit<32> left = word[59:28];
            bit<32> right = 4w0 ++ word[27:0];
            bit<1> keyed;
            meta.carried.epoch = word[60:60];
            open.apply(left, right, meta.carried.epoch, keyed);
            bit<60> plain = left ++ right[27:0];
            meta.carried.sid = plain[59:44];
            meta.carried.rpt = plain[43:36];
            meta.carried.n_af = plain[35:28];
            meta.carried.n_ff = plain[27:20];
            meta.carried.x = plain[19:19];
            if (keyed == 1 && plain[18:0] == 0) {
                if (word[63:61] == 0b011) {
                    meta.carried.what = Carried.DYNAMIC_COOKIE;
                } else if (plain[19:19] == 0) {
                    if (word[63:61] == 0b010 && plain[43:20] == 0) {
                        meta.carried.what = Carried.STATIC_COOKIE;
                    } else if (word[63:61] == 0b100 && plain[43:20] != 0) {
                        meta.carried.what = Carried.SEALED_CID;
                    }
                }
            }
        }
    }
}
