// SPDX-License-Identifier: Apache-2.0
// Opens cookies as control/unseal.p4 does, in one stage for each round (../cipher.p4).
#ifndef FRONTAGE_TNA_COMPACT_QUIC_UNSEAL_P4
#define FRONTAGE_TNA_COMPACT_QUIC_UNSEAL_P4

#include "../cipher.p4"

// The form of the connection id, which needs only parsed fields: config (3) | length (5) and the leading bits of the word.
control ConnectionIdForm(in headers_t hdr, inout metadata_t meta) {
    action sealed() {
        meta.has_sealed_id = 1;
        meta.quic_cookie.has_form = 1;
    }

    action plain() {
        meta.has_plain_id = 1;
        meta.quic_cookie.has_form = 1;
    }

    @hidden table form {
        key = {
            hdr.connection_id.isValid(): ternary;
            hdr.connection_id.length: ternary;
            hdr.connection_id.config: ternary;
            hdr.connection_id.word[63:60]: ternary;
        }
        actions = { sealed; plain; NoAction; }
        const entries = {
            (true, 11, 0, 0b1000): sealed();
            (true, 11, 1, 0b1001): sealed();
            (true, 11, CID_PLAIN, _): plain();
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        form.apply();
    }
}

control Unseal(inout metadata_t meta) {
    FirstRound() round0;
    SecondRound() round1;
    ThirdRound() round2;
    LastRound() round3;
    Hash<bit<32>>(HashAlgorithm_t.XOR32) right;

    action open_right() {
        meta.right_half = right.get({
            4w0, meta.cookie_word[27:0],
            meta.round0.output0, meta.round0.output1, meta.round0.output2, meta.round0.output3,
            meta.round2.output0, meta.round2.output1, meta.round2.output2, meta.round2.output3 });
    }

    action read_plain() {
        IN_HASH { meta.quic_cookie.sid = meta.cookie_word[63:48]; }
    }

    apply {
        read_plain();
        round0.apply(meta);
        round1.apply(meta);
        round2.apply(meta);
        round3.apply(meta);
        open_right();
    }
}

// The server in the packet: in meta.tree.best, whose other half is RPT (8) | N_AF (8) of a sealed cookie, or the
// headroom of the tree's best server. A single table, so that combining the results of the last round, of the tree and of the
// hash needs no further stage. A server's packet identifies itself if the result is zero, because the hash includes its SID.
//
// The form of the connection id decides, before it is known whether a key sealed it. A first Initial whose random connection
// id looks like a sealed one is therefore assigned by the hash.
control Candidate(in headers_t hdr, inout metadata_t meta) {
    Register<bit<32>, bit<16>>(TREE_SLOTS) roots;
    Hash<bit<32>>(HashAlgorithm_t.XOR32) left;

    RegisterAction<bit<32>, bit<16>, bit<32>>(roots) read = {
        void apply(inout bit<32> root, out bit<32> best) {
            best = root & 0xffff0fff; // without the tie (control/tree.p4)
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<32>>(roots) write = {
        void apply(inout bit<32> root) {
            root = hdr.worker.best;
        }
    };

    action read_root() {
        meta.tree.best = read.execute(meta.tree_base);
    }

    action write_root() {
        write.execute(meta.tree_base);
    }

    // The halves of the word change places. A client's packet has no SID yet.
    action open_word() {
        meta.tree.best = left.get({
            16w0, meta.sid,
            meta.cookie_word[43:28], meta.cookie_word[59:44],
            meta.round1.output0[15:0], meta.round1.output0[31:16], meta.round1.output1[15:0], meta.round1.output1[31:16],
            meta.round1.output2[15:0], meta.round1.output2[31:16], meta.round1.output3[15:0], meta.round1.output3[31:16],
            meta.round3.output0[15:0], meta.round3.output0[31:16], meta.round3.output1[15:0], meta.round3.output1[31:16],
            meta.round3.output2[15:0], meta.round3.output2[31:16], meta.round3.output3[15:0], meta.round3.output3[31:16] });
    }

    action use_plain() {
        meta.tree.best[15:0] = meta.quic_cookie.sid;
    }

    action use_hash() {
        meta.tree.best[15:0] = meta.hash_sid;
    }

    @hidden table source {
        key = {
            meta.direction: ternary;
            meta.at_cookie_address: ternary;
            meta.has_sealed_id: ternary;
            meta.may_hold_initial: ternary;
            meta.has_plain_id: ternary;
            meta.policy: ternary;
        }
        actions = { open_word; read_root; write_root; use_plain; use_hash; @defaultonly NoAction; }
        const entries = {
            (Direction.WORKER, _, _, _, _, _): write_root();
            (Direction.DOWN, _, _, _, _, _): open_word();
            (Direction.UP, 1, _, _, _, _): open_word();
            (Direction.UP, _, 1, _, _, _): open_word();
            (Direction.UP, _, _, 1, _, POLICY_CHEETAH_LL): read_root();
            (Direction.UP, _, _, 1, _, POLICY_CCLB4): read_root();
            (Direction.UP, _, _, 1, _, _): use_hash();
            (Direction.UP, _, _, _, 1, _): use_plain();
        }
        const default_action = NoAction();
        size = 8;
    }

    apply {
        source.apply();
    }
}

// The kind of the opened word (docs/cookie.md).
control Kind(inout metadata_t meta) {
    action set_kind(QuicCookie kind) {
        meta.quic_cookie.kind = kind;
    }

    // The client expects its server's cookie address as the source.
    action from_cookie_address(QuicCookie kind) {
        meta.quic_cookie.kind = kind;
        meta.from_cookie_address = 1;
    }

    action bad_source() {
        meta.is_bad_source = 1;
    }

    @hidden table kind {
        key = {
            meta.direction: ternary;
            meta.at_cookie_address: ternary;
            meta.has_sealed_id: ternary;
            meta.has_plain_id: ternary;
            meta.is_from_dip: ternary;
            meta.is_keyed: ternary;
            meta.cookie_word[63:61]: ternary;
            meta.right_half: ternary;
            meta.tree.best: ternary;
            meta.cookie_prefix[63:32]: ternary;
        }
        actions = { set_kind; from_cookie_address; bad_source; NoAction; }
        const entries = {
            (Direction.UP, 1, _, _, _, 1, 0b010, 0, 0 &&& 0xffff0000, _): set_kind(QuicCookie.STATIC);
            (Direction.UP, 1, _, _, _, _, _, _, _, _): NoAction();
            (Direction.UP, _, 1, _, _, 1, _, 0, 0 &&& 0xffff0000, _): NoAction(); // a connection id has a nonce
            (Direction.UP, _, 1, _, _, 1, _, 0 &&& 0xfffff, _, _): set_kind(QuicCookie.SEALED_CID);
            (Direction.UP, _, _, 1, _, _, _, _, _, _): set_kind(QuicCookie.PLAIN_CID);
            (Direction.DOWN, _, _, _, 1, _, _, _, _, _): NoAction();
            (Direction.DOWN, _, _, _, _, 1, 0b011, 0 &&& 0xfffff, 0 &&& 0xffff, _): set_kind(QuicCookie.DYNAMIC);
            (Direction.DOWN, _, _, _, _, _, _, _, _, 0): bad_source(); // the service has no prefix
            (Direction.DOWN, _, _, _, _, 1, 0b011, 0x80000 &&& 0xfffff, 0 &&& 0xffff, _): from_cookie_address(QuicCookie.DYNAMIC);
            (Direction.DOWN, _, _, _, _, 1, 0b010, 0, 0, _): from_cookie_address(QuicCookie.STATIC);
            (Direction.DOWN, _, _, _, _, _, _, _, _, _): bad_source();
        }
        const default_action = NoAction();
        size = 16;
    }

    apply {
        kind.apply();
    }
}

#endif
