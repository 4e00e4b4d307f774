// SPDX-License-Identifier: Apache-2.0
// The cipher of the IPv6 carrier and of connection ids (docs/cookie.md): a Feistel network of four rounds over 32 +
// 28 bits. Its round function is the XOR of one table lookup per byte. The switch only unseals, so the controller
// installs the rounds in reverse order.
control CookieRound(in bit<32> word, in bit<1> epoch, inout bit<32> half, out bit<1> keyed) {
    XorWords() xor_words; // hash.p4 of the architecture
    bit<32> output0;
    bit<32> output1;
    bit<32> output2;
    bit<32> output3;

    action set_output0(bit<32> value) {
        output0 = value;
    }

    table byte0 {
        key = { epoch: exact @name("epoch"); word[31:24]: exact @name("byte"); }
        actions = { set_output0; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    action set_output1(bit<32> value) {
        output1 = value;
    }

    table byte1 {
        key = { epoch: exact @name("epoch"); word[23:16]: exact @name("byte"); }
        actions = { set_output1; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    action set_output2(bit<32> value) {
        output2 = value;
    }

    table byte2 {
        key = { epoch: exact @name("epoch"); word[15:8]: exact @name("byte"); }
        actions = { set_output2; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    action set_output3(bit<32> value) {
        output3 = value;
    }

    table byte3 {
        key = { epoch: exact @name("epoch"); word[7:0]: exact @name("byte"); }
        actions = { set_output3; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    apply {
        output0 = 0;
        output1 = 0;
        output2 = 0;
        output3 = 0;
        keyed = 0;
        byte0.apply();
        byte1.apply();
        byte2.apply();
        if (byte3.apply().hit) {
            keyed = 1;
        }
        xor_words.apply(half, output0, output1, output2, output3);
    }
}

control Cookie6Cipher(inout bit<32> left, inout bit<32> right, in bit<1> epoch, out bit<1> keyed) {
    CookieRound() round0;
    CookieRound() round1;
    CookieRound() round2;
    CookieRound() round3;

    apply {
        round0.apply(left, epoch, right, keyed);
        round1.apply(right, epoch, left, keyed);
        round2.apply(left, epoch, right, keyed);
        round3.apply(right, epoch, left, keyed);
    }
}
