// The cipher of the TCP cookie (docs/cookie.md): a Feistel network of four rounds, in which a round is one look-up in a secret
// table and one XOR. Seen from the other end the same rounds open what it sealed, so both directions use this one control;
// which tables stand in which round is the controller's doing.
control CookieCipher(inout bit<8> a, inout bit<8> b, in bit<1> epoch, in bit<32> tweak) {
    bit<8> index;
    bit<8> mixed;

    action mix(bit<8> value) {
        mixed = value;
    }

    table round0 {
        key = { epoch: exact @name("epoch"); index: exact @name("index"); }
        actions = { mix; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round1 {
        key = { epoch: exact @name("epoch"); index: exact @name("index"); }
        actions = { mix; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round2 {
        key = { epoch: exact @name("epoch"); index: exact @name("index"); }
        actions = { mix; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    table round3 {
        key = { epoch: exact @name("epoch"); index: exact @name("index"); }
        actions = { mix; NoAction; }
        const default_action = NoAction();
        size = COOKIE_ROUND;
    }

    apply {
        mixed = 0;
        index = b ^ tweak[31:24];
        round0.apply();
        a = a ^ mixed;

        mixed = 0;
        index = a ^ tweak[23:16];
        round1.apply();
        b = b ^ mixed;

        mixed = 0;
        index = b ^ tweak[15:8];
        round2.apply();
        a = a ^ mixed;

        mixed = 0;
        index = a ^ tweak[7:0];
        round3.apply();
        b = b ^ mixed;
    }
}
