// SPDX-License-Identifier: Apache-2.0
// Unseals the word that may be the cookie of a QUIC packet (control/unseal.p4) from either side. QuicCookies (quic.p4) checks it.
#ifndef FRONTAGE_TNA_COMPACT_UNSEAL_P4
#define FRONTAGE_TNA_COMPACT_UNSEAL_P4

#include "cipher.p4"

// The form of the word, from its unencrypted bits.
control CookieForm(in headers_t hdr, inout metadata_t meta) {
    // The difference begins as the interface id of the DIP (vip.p4).
    action compare_dip() {
        meta.dip_difference = meta.cookie_word ^ meta.dip_difference;
    }

    action set_form(bit<8> form) {
        meta.cookie_form = form;
    }

    @hidden table form {
        key = {
            meta.direction: ternary;
            meta.at_cookie_address: ternary;
            hdr.ipv4.isValid(): ternary;
            hdr.connection_id.isValid(): ternary;
            hdr.connection_id.length: ternary;
            hdr.connection_id.config: ternary;
            meta.cookie_word[63:60]: ternary;
            meta.dip_difference: ternary;
        }
        actions = { set_form; NoAction; }
        const entries = {
            // to a service: a connection id that one of our servers chose
            (Direction.UP, 0, _, true, 11, CID_PLAIN, _, _): set_form(FORM_PLAIN_CID);
            (Direction.UP, 0, _, true, 11, 0, 0b1000, _): set_form(FORM_SEALED_CID);
            (Direction.UP, 0, _, true, 11, 1, 0b1001, _): set_form(FORM_SEALED_CID);
            (Direction.UP, 1, _, _, _, _, 0b0100 &&& 0b1100, _): set_form(FORM_INTERFACE_ID);
            // from a server; there are no cookies in IPv4 addresses
            (Direction.DOWN, _, true, _, _, _, _, _): set_form(FORM_DIP);
            (Direction.DOWN, _, _, _, _, _, _, 0): set_form(FORM_DIP);
            (Direction.DOWN, _, _, _, _, _, 0b0100 &&& 0b1100, _): set_form(FORM_INTERFACE_ID);
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        compare_dip();
        form.apply();
    }
}

control Unseal(inout metadata_t meta) {
    FirstRound() round0;
    SecondRound() round1;
    ThirdRound() round2;
    LastRound() round3;
    Hash<bit<32>>(HashAlgorithm_t.XOR32) left;
    Hash<bit<32>>(HashAlgorithm_t.XOR32) right;

    // SID (16) | RPT (8) | N_AF (8)
    action open_left() {
        meta.opened_left = left.get({
            meta.cookie_word[59:28],
            meta.round1.output0, meta.round1.output1, meta.round1.output2, meta.round1.output3,
            meta.round3.output0, meta.round3.output1, meta.round3.output2, meta.round3.output3 });
    }

    // N_FF (8) | x (1) | zero (19)
    action open_right() {
        meta.opened_right = right.get({
            4w0, meta.cookie_word[27:0],
            meta.round0.output0, meta.round0.output1, meta.round0.output2, meta.round0.output3,
            meta.round2.output0, meta.round2.output1, meta.round2.output2, meta.round2.output3 });
    }

    apply {
        round0.apply(meta);
        round1.apply(meta);
        round2.apply(meta);
        round3.apply(meta);
        open_left();
        open_right();
    }
}

#endif
