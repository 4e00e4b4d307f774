// SPDX-License-Identifier: Apache-2.0
// The four rounds of the cipher of QUIC cookies (control/cookie6.p4), in one stage each. Round 0 is four tables. In the other
// rounds, registers replace the tables: the hash unit computes the XOR of a byte of all results so far, and the same
// stage reads the register at that index. A table cannot match an XOR. The controller writes the registers like tables.
#ifndef FRONTAGE_TNA_COMPACT_CIPHER_P4
#define FRONTAGE_TNA_COMPACT_CIPHER_P4

// One byte of a round: a register with a word for each epoch and value of the byte, its index, and the access.
#define CIPHER_BYTE(number) \
    Register<bit<32>, bit<16>>(COOKIE_ROUND) byte##number; \
    Hash<bit<16>>(HashAlgorithm_t.XOR16) index##number; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(byte##number) look_up##number = { \
        void apply(inout bit<32> word, out bit<32> result) { \
            result = word; \
        } \
    };

// Round 0: its input is the left half, SID (16) | RPT (8) | N_AF (8).
control FirstRound(inout metadata_t meta) {
    action set_output0(bit<32> value) {
        meta.round0.output0 = value;
    }

    table byte0 {
        key = { meta.cookie_word[60:60]: exact @name("epoch"); meta.cookie_word[59:52]: exact @name("byte"); }
        actions = { set_output0; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    action set_output1(bit<32> value) {
        meta.round0.output1 = value;
    }

    table byte1 {
        key = { meta.cookie_word[60:60]: exact @name("epoch"); meta.cookie_word[51:44]: exact @name("byte"); }
        actions = { set_output1; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    action set_output2(bit<32> value) {
        meta.round0.output2 = value;
    }

    table byte2 {
        key = { meta.cookie_word[60:60]: exact @name("epoch"); meta.cookie_word[43:36]: exact @name("byte"); }
        actions = { set_output2; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    action set_output3(bit<32> value) {
        meta.round0.output3 = value;
        meta.is_keyed = 1;
    }

    table byte3 {
        key = { meta.cookie_word[60:60]: exact @name("epoch"); meta.cookie_word[35:28]: exact @name("byte"); }
        actions = { set_output3; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    apply {
        byte0.apply();
        byte1.apply();
        byte2.apply();
        byte3.apply();
    }
}

// Round 1: its input is the right half, XOR the outputs of round 0.
control SecondRound(inout metadata_t meta) {
    CIPHER_BYTE(0)
    CIPHER_BYTE(1)
    CIPHER_BYTE(2)
    CIPHER_BYTE(3)

    apply {
        meta.round1.output0 = look_up0.execute(index0.get({
            7w0, meta.cookie_word[60:60], 4w0, meta.cookie_word[27:24],
            8w0, meta.round0.output0[31:24], 8w0, meta.round0.output1[31:24],
            8w0, meta.round0.output2[31:24], 8w0, meta.round0.output3[31:24] }));
        meta.round1.output1 = look_up1.execute(index1.get({
            7w0, meta.cookie_word[60:60], meta.cookie_word[23:16],
            8w0, meta.round0.output0[23:16], 8w0, meta.round0.output1[23:16],
            8w0, meta.round0.output2[23:16], 8w0, meta.round0.output3[23:16] }));
        meta.round1.output2 = look_up2.execute(index2.get({
            7w0, meta.cookie_word[60:60], meta.cookie_word[15:8],
            8w0, meta.round0.output0[15:8], 8w0, meta.round0.output1[15:8],
            8w0, meta.round0.output2[15:8], 8w0, meta.round0.output3[15:8] }));
        meta.round1.output3 = look_up3.execute(index3.get({
            7w0, meta.cookie_word[60:60], meta.cookie_word[7:0],
            8w0, meta.round0.output0[7:0], 8w0, meta.round0.output1[7:0],
            8w0, meta.round0.output2[7:0], 8w0, meta.round0.output3[7:0] }));
    }
}

// Round 2: its input is the left half, XOR the outputs of round 1.
control ThirdRound(inout metadata_t meta) {
    CIPHER_BYTE(0)
    CIPHER_BYTE(1)
    CIPHER_BYTE(2)
    CIPHER_BYTE(3)

    apply {
        meta.round2.output0 = look_up0.execute(index0.get({
            7w0, meta.cookie_word[60:60], meta.cookie_word[59:52],
            8w0, meta.round1.output0[31:24], 8w0, meta.round1.output1[31:24],
            8w0, meta.round1.output2[31:24], 8w0, meta.round1.output3[31:24] }));
        meta.round2.output1 = look_up1.execute(index1.get({
            7w0, meta.cookie_word[60:60], meta.cookie_word[51:44],
            8w0, meta.round1.output0[23:16], 8w0, meta.round1.output1[23:16],
            8w0, meta.round1.output2[23:16], 8w0, meta.round1.output3[23:16] }));
        meta.round2.output2 = look_up2.execute(index2.get({
            7w0, meta.cookie_word[60:60], meta.cookie_word[43:36],
            8w0, meta.round1.output0[15:8], 8w0, meta.round1.output1[15:8],
            8w0, meta.round1.output2[15:8], 8w0, meta.round1.output3[15:8] }));
        meta.round2.output3 = look_up3.execute(index3.get({
            7w0, meta.cookie_word[60:60], meta.cookie_word[35:28],
            8w0, meta.round1.output0[7:0], 8w0, meta.round1.output1[7:0],
            8w0, meta.round1.output2[7:0], 8w0, meta.round1.output3[7:0] }));
    }
}

// Round 3: its input is the right half, XOR the outputs of rounds 0 and 2.
control LastRound(inout metadata_t meta) {
    CIPHER_BYTE(0)
    CIPHER_BYTE(1)
    CIPHER_BYTE(2)
    CIPHER_BYTE(3)

    apply {
        meta.round3.output0 = look_up0.execute(index0.get({
            7w0, meta.cookie_word[60:60], 4w0, meta.cookie_word[27:24],
            8w0, meta.round0.output0[31:24], 8w0, meta.round0.output1[31:24],
            8w0, meta.round0.output2[31:24], 8w0, meta.round0.output3[31:24],
            8w0, meta.round2.output0[31:24], 8w0, meta.round2.output1[31:24],
            8w0, meta.round2.output2[31:24], 8w0, meta.round2.output3[31:24] }));
        meta.round3.output1 = look_up1.execute(index1.get({
            7w0, meta.cookie_word[60:60], meta.cookie_word[23:16],
            8w0, meta.round0.output0[23:16], 8w0, meta.round0.output1[23:16],
            8w0, meta.round0.output2[23:16], 8w0, meta.round0.output3[23:16],
            8w0, meta.round2.output0[23:16], 8w0, meta.round2.output1[23:16],
            8w0, meta.round2.output2[23:16], 8w0, meta.round2.output3[23:16] }));
        meta.round3.output2 = look_up2.execute(index2.get({
            7w0, meta.cookie_word[60:60], meta.cookie_word[15:8],
            8w0, meta.round0.output0[15:8], 8w0, meta.round0.output1[15:8],
            8w0, meta.round0.output2[15:8], 8w0, meta.round0.output3[15:8],
            8w0, meta.round2.output0[15:8], 8w0, meta.round2.output1[15:8],
            8w0, meta.round2.output2[15:8], 8w0, meta.round2.output3[15:8] }));
        meta.round3.output3 = look_up3.execute(index3.get({
            7w0, meta.cookie_word[60:60], meta.cookie_word[7:0],
            8w0, meta.round0.output0[7:0], 8w0, meta.round0.output1[7:0],
            8w0, meta.round0.output2[7:0], 8w0, meta.round0.output3[7:0],
            8w0, meta.round2.output0[7:0], 8w0, meta.round2.output1[7:0],
            8w0, meta.round2.output2[7:0], 8w0, meta.round2.output3[7:0] }));
    }
}

#endif
