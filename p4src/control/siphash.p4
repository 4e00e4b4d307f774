// SPDX-License-Identifier: Apache-2.0
// HalfSipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of 32-bit words with additions, rotations and XORs. The
// words enter as the reference implementation reads them: little endian.
#ifndef FRONTAGE_SIPHASH_P4
#define FRONTAGE_SIPHASH_P4

struct siphash_t {
    bit<32> v0;
    bit<32> v1;
    bit<32> v2;
    bit<32> v3;
}

void siphash_round(inout siphash_t s) {
    s.v0 = s.v0 + s.v1;
    s.v1 = s.v1[26:0] ++ s.v1[31:27];
    s.v1 = s.v1 ^ s.v0;
    s.v0 = s.v0[15:0] ++ s.v0[31:16];
    s.v2 = s.v2 + s.v3;
    s.v3 = s.v3[23:0] ++ s.v3[31:24];
    s.v3 = s.v3 ^ s.v2;
    s.v0 = s.v0 + s.v3;
    s.v3 = s.v3[24:0] ++ s.v3[31:25];
    s.v3 = s.v3 ^ s.v0;
    s.v2 = s.v2 + s.v1;
    s.v1 = s.v1[18:0] ++ s.v1[31:19];
    s.v1 = s.v1 ^ s.v2;
    s.v2 = s.v2[15:0] ++ s.v2[31:16];
}

void siphash_begin(out siphash_t s, in bit<64> key) {
    s.v0 = key[63:32];
    s.v1 = key[31:0];
    s.v2 = 0x6c796765 ^ key[63:32];
    s.v3 = 0x74656462 ^ key[31:0];
}

void siphash_word(inout siphash_t s, in bit<32> word) {
    s.v3 = s.v3 ^ word;
    siphash_round(s);
    siphash_round(s);
    s.v0 = s.v0 ^ word;
}

void siphash_end(inout siphash_t s, in bit<8> bytes, out bit<32> result) {
    siphash_word(s, bytes ++ 24w0);
    s.v2 = s.v2 ^ 0xff;
    siphash_round(s);
    siphash_round(s);
    siphash_round(s);
    siphash_round(s);
    result = s.v1 ^ s.v3;
}

#endif
