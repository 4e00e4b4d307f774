// SPDX-License-Identifier: Apache-2.0
// The cipher of the TCP cookie (docs/cookie.md): a Feistel network of four rounds. A round is one lookup in a secret
// table and one XOR. The rounds in reverse order unseal the cookie, so sealing and unsealing share this control: the
// controller decides which table is in which round. The caller sets the halves and the index of each round: b (rounds 0
// and 2) or a (rounds 1 and 3) XOR a byte of the tweak. `keyed`, which the caller clears, becomes 1 if a key is installed
// for the epoch; otherwise nothing is sealed. The controller writes round 0 first and deletes it last, so an entry in round 2
// implies one in round 0.
control CookieCipher(inout cookie_halves_t halves, in bit<1> epoch, inout bit<1> keyed) {
    action xor_a(bit<8> value) {
        keyed = 1;
        halves.a = halves.a ^ value;
        halves.index1 = halves.index1 ^ value;
        halves.index3 = halves.index3 ^ value;
    }

    action xor_b(bit<8> value) {
        halves.b = halves.b ^ value;
        halves.index2 = halves.index2 ^ value;
    }

    table round0 {
        key = { epoch: exact @name("epoch"); halves.index0: exact @name("index"); }
        actions = { xor_a; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round1 {
        key = { epoch: exact @name("epoch"); halves.index1: exact @name("index"); }
        actions = { xor_b; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round2 {
        key = { epoch: exact @name("epoch"); halves.index2: exact @name("index"); }
        actions = { xor_a; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round3 {
        key = { epoch: exact @name("epoch"); halves.index3: exact @name("index"); }
        actions = { xor_b; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    apply {
        round0.apply();
        round1.apply();
        round2.apply();
        round3.apply();
    }
}
