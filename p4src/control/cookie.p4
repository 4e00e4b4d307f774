// SPDX-License-Identifier: Apache-2.0
// The cipher of the TCP cookie (docs/cookie.md): a Feistel network of four rounds. A round is one lookup in a secret
// table and one XOR. The rounds in reverse order unseal the cookie, so sealing and unsealing share this control: the
// controller decides which table is in which round. `keyed` is 0 if no key is installed for the epoch; then nothing
// is sealed.
control CookieCipher(inout bit<8> a, inout bit<8> b, in bit<1> epoch, in bit<32> tweak, out bit<1> keyed) {
    bit<8> index;
    bit<8> output;

    action set_output(bit<8> value) {
        output = value;
    }

    table round0 {
        key = { epoch: exact @name("epoch"); index: exact @name("index"); }
        actions = { set_output; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round1 {
        key = { epoch: exact @name("epoch"); index: exact @name("index"); }
        actions = { set_output; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round2 {
        key = { epoch: exact @name("epoch"); index: exact @name("index"); }
        actions = { set_output; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round3 {
        key = { epoch: exact @name("epoch"); index: exact @name("index"); }
        actions = { set_output; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    apply {
        keyed = 0;
        output = 0;
        index = b ^ tweak[31:24];
        if (round0.apply().hit) {
            keyed = 1;
        }
        a = a ^ output;

        output = 0;
        index = a ^ tweak[23:16];
        round1.apply();
        b = b ^ output;

        output = 0;
        index = b ^ tweak[15:8];
        round2.apply();
        a = a ^ output;

        output = 0;
        index = a ^ tweak[7:0];
        round3.apply();
        b = b ^ output;
    }
}
