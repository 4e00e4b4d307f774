// Retrieving phase (CloudCookie, IV.B): the server's id from the cookie that the client echoes in TSecr (docs/cookie.md).
control Retrieve(in headers_t hdr, in metadata_t meta, out sid_t sid, out bit<1> opened) {
    CookieCipher() open;

    apply {
        bit<16> code = hdr.tcp_timestamp.tsecr[15:0];
        bit<1> keyed;
        bit<32> tweak = meta.connection_hash;
        bit<8> left = code[14:7];
        bit<8> right = 1w0 ++ code[6:0];
        open.apply(right, left, code[15:15], tweak[7:0] ++ tweak[15:8] ++ tweak[23:16] ++ tweak[31:24], keyed);
        sid = 4w0 ++ left ++ right[6:3];
        opened = 0;
        if (keyed == 1 && right[2:0] == 0) {
            opened = 1;
        }
    }
}
