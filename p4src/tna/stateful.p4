// SPDX-License-Identifier: Apache-2.0
// Registers of CCLB4 and demand, each accessed once per packet.
#ifndef FRONTAGE_TNA_STATEFUL_P4
#define FRONTAGE_TNA_STATEFUL_P4

struct leaf_t {
    bit<16> headroom;
    bit<16> sid;
}

// The operation on a tree (control/tree.p4): in egress, a worker.
typedef worker_t tournament_t;

// The leaves of all tournament trees. With SET and CLEAR, tree.score is the headroom less one (tree.p4). The worker brings
// the lower half of tree.best.
control TreeLeaf(inout tournament_t tree) {
    Register<leaf_t, bit<16>>(TREE_SLOTS) leaves;

    RegisterAction<leaf_t, bit<16>, bit<16>>(leaves) write = {
        void apply(inout leaf_t leaf, out bit<16> result) {
            leaf.headroom = tree.score + 1;
            leaf.sid = tree.sid;
            result = leaf.headroom;
        }
    };

    RegisterAction<leaf_t, bit<16>, bit<16>>(leaves) add = {
        void apply(inout leaf_t leaf, out bit<16> result) {
            if (leaf.headroom > tree.score) {
                leaf.headroom = leaf.headroom - tree.score;
            } else if (leaf.headroom != 0) {
                leaf.headroom = 1;
            }
            leaf.sid = tree.sid;
            result = leaf.headroom;
        }
    };

    RegisterAction<leaf_t, bit<16>, bit<16>>(leaves) subtract = {
        void apply(inout leaf_t leaf, out bit<16> result) {
            if (leaf.headroom != 0) {
                leaf.headroom = leaf.headroom |+| tree.score;
            }
            leaf.sid = tree.sid;
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

    action write_leaf() {
        tree.best[31:16] = write.execute(tree.slot);
    }

    action add_flow() {
        tree.best[31:16] = add.execute(tree.slot);
    }

    action subtract_flow() {
        tree.best[31:16] = subtract.execute(tree.slot);
    }

    action seed_leaf() {
        tree.best[31:16] = seed.execute(tree.slot);
    }

    // One table of the chip, after the first stages, which ingress needs.
    @hidden @stage(LEAF_STAGE) table leaf {
        key = { tree.op: ternary; }
        actions = { write_leaf; add_flow; subtract_flow; seed_leaf; @defaultonly NoAction; }
        const entries = {
            TREE_ADD: add_flow();
            TREE_SUB: subtract_flow();
            TREE_SEED: seed_leaf();
            _: write_leaf(); // the default action cannot access a register on the chip
        }
        const default_action = NoAction();
        size = 4;
    }

    apply {
        leaf.apply();
    }
}

// One level of nodes above the leaves: what the children of each node sent up. `number` is the node above the leaf, and
// `child` is 1 if the leaf is in its right half. An update writes its half of the node, and compares it with the other
// half. The halves are in two registers, because a stateful ALU can compare a register with a value of the packet, but
// not with another register. Returns the better half in tree.best.
control TreeLevel(inout tournament_t tree, in bit<16> number, in bit<1> child)(bit<8> level, bit<32> nodes) {
    Register<bit<32>, bit<16>>(nodes) left;
    Register<bit<32>, bit<16>>(nodes) right;

    RegisterAction<bit<32>, bit<16>, bit<32>>(left) set_left = {
        void apply(inout bit<32> half) {
            half = tree.best;
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<32>>(right) set_right = {
        void apply(inout bit<32> half) {
            half = tree.best;
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<32>>(left) compare_left = {
        void apply(inout bit<32> half, out bit<32> best) {
            best = max(half, tree.best);
        }
    };

    RegisterAction<bit<32>, bit<16>, bit<32>>(right) compare_right = {
        void apply(inout bit<32> half, out bit<32> best) {
            best = max(half, tree.best);
        }
    };

    apply {
        if (tree.depth >= level && child == 0) {
            set_left.execute(number);
            tree.best = compare_right.execute(number);
        } else if (tree.depth >= level) {
            set_right.execute(number);
            tree.best = compare_left.execute(number);
        }
    }
}

// Returns the pool index of the VIP's next connection.
control RoundRobin(in vip_id_t vip_id, in bit<16> pool_size, out bit<16> index) {
    Register<bit<16>, vip_id_t>(VIPS) next;

    RegisterAction<bit<16>, vip_id_t, bit<16>>(next) advance = {
        void apply(inout bit<16> value, out bit<16> result) {
            if (value >= pool_size) { // past the end, or beyond it since the pool has shrunk
                result = 0;
                value = 1;
            } else {
                result = value;
                value = value + 1;
            }
        }
    };

    apply {
        index = advance.execute(vip_id);
    }
}

// `seen` is the time of the last packet. Zero, in an empty entry, is longer ago than any timeout, because the clock does
// not begin at zero.
struct connection_entry_t {
    bit<32> fingerprint;
    bit<32> seen;
}

// The SIDs of a table's entries.
control ConnectionSids(inout connection_t connection)(bit<32> size) {
    Register<bit<16>, bit<16>>(size) sids;

    RegisterAction<bit<16>, bit<16>, bit<16>>(sids) read = {
        void apply(inout bit<16> sid, out bit<16> result) {
            result = sid;
        }
    };

    RegisterAction<bit<16>, bit<16>, bit<16>>(sids) write = {
        void apply(inout bit<16> sid) {
            sid = connection.sid;
        }
    };

    apply {
        if (connection.is_new_entry == 1) {
            write.execute(connection.index);
        } else {
            connection.sid = read.execute(connection.index);
        }
    }
}

// The connections of control/fallback.p4, with LOOKUP, CLAIM and RELEASE. The timeout is a constant, because a stateful
// ALU has room for two values of the packet: the fingerprint and the time.
control ConnectionTable(inout connection_t connection)(bit<32> size) {
    Register<connection_entry_t, bit<16>>(size) owners;

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) refresh = {
        void apply(inout connection_entry_t entry, out bit<1> is_own) {
            is_own = 0;
            if (entry.fingerprint == connection.fingerprint && connection.now - entry.seen <= FALLBACK_TICKS) {
                is_own = 1;
                entry.seen = connection.now;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) claim = {
        void apply(inout connection_entry_t entry, out bit<1> is_own) {
            is_own = 0;
            if (entry.fingerprint == connection.fingerprint || connection.now - entry.seen > FALLBACK_TICKS) {
                is_own = 1;
                entry.fingerprint = connection.fingerprint;
                entry.seen = connection.now;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) release = {
        void apply(inout connection_entry_t entry) {
            if (entry.fingerprint == connection.fingerprint) {
                entry.seen = 0;
            }
        }
    };

    apply {
        connection.has_entry = 0;
        connection.is_new_entry = 0;
        if (connection.op == CONNECTION_LOOKUP) {
            connection.has_entry = refresh.execute(connection.index);
        } else if (connection.op == CONNECTION_CLAIM) {
            connection.has_entry = claim.execute(connection.index);
            connection.is_new_entry = connection.has_entry;
        } else {
            release.execute(connection.index);
        }
    }
}

// Results of a JOIN: one of four bits, which says whether the fingerprint is the packet's (1), and whether the entry is
// live (2).
const bit<8> JOIN_FREE = 1 << 0;
const bit<8> JOIN_EXPIRED = 1 << 1;
const bit<8> JOIN_OTHER = 1 << 2;
const bit<8> JOIN_OWN = 1 << 3;

// The handshakes of control/handshake.p4, with LOOKUP, JOIN and RELEASE.
control HandshakeTable(inout connection_t connection)(bit<32> size) {
    Register<connection_entry_t, bit<16>>(size) owners;
    bit<8> joined;

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) look_up = {
        void apply(inout connection_entry_t entry, out bit<1> is_own) {
            is_own = 0;
            if (entry.fingerprint == connection.fingerprint && connection.now - entry.seen <= HANDSHAKE_TICKS) {
                is_own = 1;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) refresh = {
        void apply(inout connection_entry_t entry, out bit<1> is_own) {
            is_own = 0;
            if (entry.fingerprint == connection.fingerprint && connection.now - entry.seen <= HANDSHAKE_TICKS) {
                is_own = 1;
                entry.seen = connection.now;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<8>>(owners) join = {
        void apply(inout connection_entry_t entry, out bit<8> result) {
            result = this.predicate(entry.fingerprint == connection.fingerprint,
                                    connection.now - entry.seen <= HANDSHAKE_TICKS);
            if (entry.fingerprint == connection.fingerprint || connection.now - entry.seen > HANDSHAKE_TICKS) {
                entry.fingerprint = connection.fingerprint;
                entry.seen = connection.now;
            }
        }
    };

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(owners) release = {
        void apply(inout connection_entry_t entry) {
            if (entry.fingerprint == connection.fingerprint) {
                entry.seen = 0;
            }
        }
    };

    apply {
        connection.has_entry = 0;
        connection.is_new_entry = 0;
        if (connection.op == CONNECTION_LOOKUP) {
            if (connection.refresh == 1) {
                connection.has_entry = refresh.execute(connection.index);
            } else {
                connection.has_entry = look_up.execute(connection.index);
            }
        } else if (connection.op == CONNECTION_JOIN) {
            joined = join.execute(connection.index);
            if (joined == JOIN_OWN) {
                connection.has_entry = 1;
            } else if (joined == JOIN_FREE || joined == JOIN_EXPIRED) {
                connection.has_entry = 1;
                connection.is_new_entry = 1;
            }
        } else {
            release.execute(connection.index);
        }
    }
}

struct recent_server_t {
    bit<32> fingerprint;
    bit<32> sid; // behind a bit that is set in entries in use
}

// The last server of each hash index (control/recent.p4).
control RecentServers(in bit<1> writes, in bit<16> index, in bit<32> fingerprint, inout sid_t sid, inout bit<1> found) {
    Register<recent_server_t, bit<16>>(RECENT_SERVERS) entries;
    bit<32> sender; // a stateful ALU takes operands of the width of its cells
    bit<32> result;

    RegisterAction<recent_server_t, bit<16>, bit<32>>(entries) replace = {
        void apply(inout recent_server_t entry) {
            entry.fingerprint = fingerprint;
            entry.sid = sender;
        }
    };

    RegisterAction<recent_server_t, bit<16>, bit<32>>(entries) look_up = {
        void apply(inout recent_server_t entry, out bit<32> own) {
            own = 0;
            if (entry.fingerprint == fingerprint) {
                own = entry.sid;
            }
        }
    };

    apply {
        if (writes == 1) {
            sender = 15w0 ++ 1w1 ++ sid;
            replace.execute(index);
        } else {
            result = look_up.execute(index);
            sid = result[15:0];
            found = result[16:16];
        }
    }
}

// The last handshake of each hash index.
control RecentHandshakes(in bit<16> index, in bit<32> fingerprint, in tick_t now, out bit<1> is_duplicate) {
    Register<connection_entry_t, bit<16>>(RECENT_HANDSHAKES) entries;

    RegisterAction<connection_entry_t, bit<16>, bit<1>>(entries) replace = {
        void apply(inout connection_entry_t entry, out bit<1> result) {
            result = 0;
            // TCP clients wait up to 32 s before their last but one SYN (RFC 6298, 5.5).
            if (entry.fingerprint == fingerprint && now - entry.seen <= RECENT_TICKS) {
                result = 1;
            }
            entry.fingerprint = fingerprint;
            entry.seen = now;
        }
    };

    apply {
        is_duplicate = replace.execute(index);
    }
}

#endif
