// SPDX-License-Identifier: Apache-2.0
// Registers of CCLB4 and demand, each accessed once per packet.
#ifndef FRONTAGE_TNA_STATEFUL_P4
#define FRONTAGE_TNA_STATEFUL_P4

struct leaf_t {
    bit<16> headroom;
    bit<16> sid;
}

// The leaves of all tournament trees (control/tree.p4).
control TreeLeaf(inout tree_t tree) {
    Register<leaf_t, bit<16>>(TREE_SLOTS) leaves;
    bit<16> headroom;
    bit<16> sid;

    // SET and CLEAR
    RegisterAction<leaf_t, bit<16>, bit<16>>(leaves) write = {
        void apply(inout leaf_t leaf, out bit<16> result) {
            leaf.headroom = headroom;
            leaf.sid = sid;
            result = leaf.headroom;
        }
    };

    RegisterAction<leaf_t, bit<16>, bit<16>>(leaves) add = {
        void apply(inout leaf_t leaf, out bit<16> result) {
            if (leaf.headroom > tree.score) {
                leaf.headroom = leaf.headroom - tree.score;
                leaf.sid = tree.sid;
            } else if (leaf.headroom != 0) {
                leaf.headroom = 1;
                leaf.sid = tree.sid;
            }
            result = leaf.headroom;
        }
    };

    RegisterAction<leaf_t, bit<16>, bit<16>>(leaves) subtract = {
        void apply(inout leaf_t leaf, out bit<16> result) {
            if (leaf.headroom != 0) {
                leaf.headroom = leaf.headroom |+| tree.score;
                leaf.sid = tree.sid;
            }
            result = leaf.headroom;
        }
    };

    RegisterAction<leaf_t, bit<16>, bit<16>>(leaves) seed = {
        void apply(inout leaf_t leaf, out bit<16> result) {
            if (leaf.headroom == 0 || leaf.sid != tree.sid) {
                leaf.headroom = 0xffff;
            }
            leaf.sid = tree.sid;
            result = leaf.headroom;
        }
    };

    apply {
        sid = tree.sid;
        if (tree.op == TREE_SET) {
            headroom = 16w0xffff |-| tree.score;
            if (headroom == 0) {
                headroom = 1;
            }
            headroom = write.execute(tree.slot);
        } else if (tree.op == TREE_CLEAR) {
            headroom = 0;
            sid = 0;
            headroom = write.execute(tree.slot);
        } else if (tree.op == TREE_ADD) {
            headroom = add.execute(tree.slot);
        } else if (tree.op == TREE_SUB) {
            headroom = subtract.execute(tree.slot);
        } else { // SEED
            headroom = seed.execute(tree.slot);
        }
        tree.best = headroom ++ sid;
        if (headroom == 0) {
            tree.best = 0;
        }
    }
}

struct node_t {
    bit<32> left;
    bit<32> right;
}

// One level of nodes above the leaves. An entry holds what both children sent up. Returns the better one in tree.best.
control TreeLevel(inout tree_t tree)(bit<8> level, bit<32> nodes) {
    Register<node_t, bit<16>>(nodes) children;
    bit<1> coin;

    RegisterAction<node_t, bit<16>, bit<32>>(children) set_left = {
        void apply(inout node_t node, out bit<32> best) {
            node.left = tree.best;
            best = node.left;
            if (node.right[31:16] > node.left[31:16] || (node.right[31:16] == node.left[31:16] && coin == 1)) {
                best = node.right;
            }
        }
    };

    RegisterAction<node_t, bit<16>, bit<32>>(children) set_right = {
        void apply(inout node_t node, out bit<32> best) {
            node.right = tree.best;
            best = node.left;
            if (node.right[31:16] > node.left[31:16] || (node.right[31:16] == node.left[31:16] && coin == 1)) {
                best = node.right;
            }
        }
    };

    apply {
        bit<16> number = tree.slot >> level;
        bit<16> child = tree.slot >> (level - 1);
        bit<16> coins = tree.tie_break >> level;
        coin = coins[0:0];
        if (tree.depth >= level) {
            if (child[0:0] == 0) {
                tree.best = set_left.execute(number);
            } else {
                tree.best = set_right.execute(number);
            }
        }
    }
}

// Returns the pool index of the VIP's next connection.
control RoundRobin(in vip_id_t vip_id, in bit<16> pool_size, out bit<16> index) {
    Register<bit<16>, vip_id_t>(VIPS) next;

    RegisterAction<bit<16>, vip_id_t, bit<16>>(next) advance = {
        void apply(inout bit<16> value, out bit<16> result) {
            if (value >= pool_size) {
                value = 0; // past the end, or beyond it since the pool has shrunk
            }
            result = value;
            value = value + 1;
        }
    };

    apply {
        index = advance.execute(vip_id);
    }
}

// `seen`: in use (1) | last seen, in ticks (16)
struct connection_entry_t {
    bit<32> fingerprint;
    bit<32> seen;
}

const bit<8> ENTRY_OTHER = 0;
const bit<8> ENTRY_OWN = 1;
const bit<8> ENTRY_CLAIMED = 2;

// Connections or handshakes: who owns an entry, and the entry's SID.
control ConnectionTable(inout connection_t connection)(bit<32> size) {
    Register<connection_entry_t, bit<16>>(size) owners;
    Register<bit<16>, bit<16>>(size) sids;
    bit<32> now;
    bit<8> found;

    RegisterAction<connection_entry_t, bit<16>, bit<8>>(owners) look_up = {
        void apply(inout connection_entry_t entry, out bit<8> result) {
            result = ENTRY_OTHER;
            if (entry.fingerprint == connection.fingerprint && entry.seen != 0
                && (bit<16>)(now - entry.seen) <= connection.timeout) {
                result = ENTRY_OWN;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<8>>(owners) refresh = {
        void apply(inout connection_entry_t entry, out bit<8> result) {
            result = ENTRY_OTHER;
            if (entry.fingerprint == connection.fingerprint && entry.seen != 0
                && (bit<16>)(now - entry.seen) <= connection.timeout) {
                result = ENTRY_OWN;
                entry.seen = now;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<8>>(owners) claim = {
        void apply(inout connection_entry_t entry, out bit<8> result) {
            result = ENTRY_OTHER;
            if (entry.fingerprint == connection.fingerprint || entry.seen == 0
                || (bit<16>)(now - entry.seen) > connection.timeout) {
                result = ENTRY_CLAIMED;
                entry.fingerprint = connection.fingerprint;
                entry.seen = now;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<8>>(owners) join = {
        void apply(inout connection_entry_t entry, out bit<8> result) {
            result = ENTRY_OTHER;
            if (entry.seen == 0 || (bit<16>)(now - entry.seen) > connection.timeout) {
                result = ENTRY_CLAIMED;
                entry.fingerprint = connection.fingerprint;
                entry.seen = now;
            } else if (entry.fingerprint == connection.fingerprint) {
                result = ENTRY_OWN;
                if (connection.refresh == 1) {
                    entry.seen = now;
                }
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<8>>(owners) release = {
        void apply(inout connection_entry_t entry, out bit<8> result) {
            result = ENTRY_OTHER;
            if (entry.fingerprint == connection.fingerprint) {
                entry.seen = 0;
            }
        }
    };

    RegisterAction<bit<16>, bit<16>, bit<16>>(sids) read_sid = {
        void apply(inout bit<16> sid, out bit<16> result) {
            result = sid;
        }
    };

    RegisterAction<bit<16>, bit<16>, bit<16>>(sids) write_sid = {
        void apply(inout bit<16> sid, out bit<16> result) {
            sid = connection.sid;
            result = sid;
        }
    };

    apply {
        now = 15w0 ++ 1w1 ++ connection.now;
        found = ENTRY_OTHER;
        if (connection.op == CONNECTION_LOOKUP) {
            if (connection.refresh == 1) {
                found = refresh.execute(connection.index);
            } else {
                found = look_up.execute(connection.index);
            }
        } else if (connection.op == CONNECTION_CLAIM) {
            found = claim.execute(connection.index);
        } else if (connection.op == CONNECTION_JOIN) {
            found = join.execute(connection.index);
        } else if (connection.op == CONNECTION_RELEASE) {
            found = release.execute(connection.index);
        }

        connection.has_entry = 0;
        connection.is_new_entry = 0;
        if (found == ENTRY_OWN) {
            connection.has_entry = 1;
            connection.sid = read_sid.execute(connection.index);
        } else if (found == ENTRY_CLAIMED) {
            connection.has_entry = 1;
            connection.is_new_entry = 1;
            connection.sid = write_sid.execute(connection.index);
        }
    }
}

// The last handshake of each hash index. `seen`: in use (1) | last seen, in ticks (16)
control RecentHandshakes(in bit<16> index, in bit<32> fingerprint, in bit<16> now, out bit<1> is_duplicate) {
    Register<connection_entry_t, bit<16>>(RECENT_HANDSHAKES) entries;
    bit<32> seen;

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(entries) replace = {
        void apply(inout connection_entry_t entry, out bit<1> result) {
            result = 0;
            // TCP clients wait up to 32 s before their last but one SYN (RFC 6298, 5.5).
            if (entry.fingerprint == fingerprint && entry.seen != 0 && (bit<16>)(seen - entry.seen) <= RECENT_TICKS) {
                result = 1;
            }
            entry.fingerprint = fingerprint;
            entry.seen = seen;
        }
    };

    apply {
        seen = 15w0 ++ 1w1 ++ now;
        is_duplicate = replace.execute(index);
    }
}

#endif
