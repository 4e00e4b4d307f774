// SPDX-License-Identifier: Apache-2.0
// The cipher of the IPv6 carrier and of connection ids (docs/cookie.md): a Feistel network of four rounds over 32 +
// 28 bits. Its round function is the XOR of one table lookup per byte. The switch only unseals, so the controller
// installs the rounds in reverse order.
control CookieRound(in bit<32> word, in bit<1> epoch, inout bit<32> half, out bit<1> keyed) {
    action xor_output(bit<32> value) {
        half = half ^ value;
    }

    table byte0 {
        key = { epoch: exact @name("epoch"); word[31:24]: exact @name("byte"); }
        actions = { xor_output; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table byte1 {
        key = { epoch: exact @name("epoch"); word[23:16]: exact @name("byte"); }
        actions = { xor_output; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table byte2 {
        key = { epoch: exact @name("epoch"); word[15:8]: exact @name("byte"); }
        actions = { xor_output; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table byte3 {
        key = { epoch: exact @name("epoch"); word[7:0]: exact @name("byte"); }
        actions = { xor_output; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    apply {
        keyed = 0;
        byte0.apply();
        byte1.apply();
        byte2.apply();
        if (byte3.apply().hit) {
            keyed = 1;
        }
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
