// SPDX-License-Identifier: Apache-2.0
// The cipher of the TCP cookie (docs/cookie.md): a Feistel network of four rounds. A round is one lookup in a secret
// table and one XOR. The rounds in reverse order unseal the cookie, so sealing and unsealing share this control: the
// controller decides which table is in which round. `keyed` is 0 if no key is installed for the epoch; then nothing
// is sealed.
control CookieCipher(inout bit<8> a, inout bit<8> b, in bit<1> epoch, in bit<32> tweak, out bit<1> keyed) {
    // The index of each round. A round changes one half, and the later indices that depend on it.
    bit<8> index0;
    bit<8> index1;
    bit<8> index2;
    bit<8> index3;

    action xor_a(bit<8> value) {
        a = a ^ value;
        index1 = index1 ^ value;
        index3 = index3 ^ value;
    }

    action xor_b(bit<8> value) {
        b = b ^ value;
        index2 = index2 ^ value;
    }

    table round0 {
        key = { epoch: exact @name("epoch"); index0: exact @name("index"); }
        actions = { xor_a; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round1 {
        key = { epoch: exact @name("epoch"); index1: exact @name("index"); }
        actions = { xor_b; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round2 {
        key = { epoch: exact @name("epoch"); index2: exact @name("index"); }
        actions = { xor_a; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round3 {
        key = { epoch: exact @name("epoch"); index3: exact @name("index"); }
        actions = { xor_b; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    apply {
        index0 = b ^ tweak[31:24];
        index1 = a ^ tweak[23:16];
        index2 = b ^ tweak[15:8];
        index3 = a ^ tweak[7:0];
        keyed = 0;
        if (round0.apply().hit) {
            keyed = 1;
        }
        round1.apply();
        round2.apply();
        round3.apply();
    }
}
