// SPDX-License-Identifier: Apache-2.0
// Registers of CCLB4 and demand, each accessed once per packet.
#ifndef FRONTAGE_V1MODEL_STATEFUL_P4
#define FRONTAGE_V1MODEL_STATEFUL_P4

// The operation on a tree (control/tree.p4).
typedef tree_t tournament_t;

// The leaves of all tournament trees (control/tree.p4). An entry: headroom (16) | SID (16) | last report (32)
control TreeLeaf(inout tree_t tree) {
    register<bit<64>>(TREE_SLOTS) leaves;

    apply {
        bit<64> leaf;
        leaves.read(leaf, (bit<32>)tree.slot);
        bit<16> headroom = leaf[63:48];
        bit<16> sid = leaf[47:32];
        bit<16> reported = 16w0xffff |-| tree.score;
        if (reported == 0) {
            reported = 1;
        }
        bit<32> report = REPORT_UNKNOWN;
        if (tree.op == TREE_SET) {
            report = 15w0 ++ 1w1 ++ reported;
        } else if (tree.op == TREE_CLEAR) {
            report = REPORT_INACTIVE;
        }

        if (tree.is_report == 1 && report == leaf[31:0]) {
            tree.depth = 0; // no news for the nodes above
        } else if (tree.op != TREE_READ) {
            sid = tree.sid;
            if (tree.op == TREE_SET) {
                headroom = reported;
            } else if (tree.op == TREE_ADD && headroom != 0) {
                headroom = headroom |-| tree.score;
                if (headroom == 0) {
                    headroom = 1;
                }
            } else if (tree.op == TREE_SUB && headroom != 0) {
                headroom = headroom |+| tree.score;
            } else if (tree.op == TREE_SEED && (headroom == 0 || leaf[47:32] != tree.sid)) {
                headroom = 0xffff;
            } else if (tree.op == TREE_CLEAR) {
                headroom = 0;
            }
            if (headroom == 0) {
                sid = 0;
            }
            leaves.write((bit<32>)tree.slot, headroom ++ sid ++ report);
        }
        tree.best = headroom ++ 4w0 ++ sid[11:0];
    }
}

// One level of nodes above the leaves. An entry holds what both children sent up. Returns the better one in tree.best. A
// coin decides between equal scores: one of the packet's tie-breaking bits for each level.
control TreeLevel(inout tree_t tree, in bit<16> number, in bit<1> child)(bit<8> level, bit<32> nodes) {
    register<bit<64>>(nodes) children;

    apply {
        bit<64> pair;
        bit<32> node = (bit<32>)number;
        if (tree.depth >= level && (tree.op != TREE_READ || tree.depth == level)) {
            children.read(pair, node);
            if (tree.op != TREE_READ) {
                if (child == 1) {
                    pair = pair[63:32] ++ tree.best;
                } else {
                    pair = tree.best ++ pair[31:0];
                }
                children.write(node, pair);
            }
            bit<4> coins = tree.tie_break >> (level & 3);
            tree.best = pair[63:32];
            if (pair[31:16] > pair[63:48] || (pair[31:16] == pair[63:48] && coins[0:0] == 1)) {
                tree.best = pair[31:0];
            }
        }
    }
}

// Returns the pool index of the VIP's next connection.
control RoundRobin(in vip_id_t vip_id, in bit<16> pool_size, out bit<16> index) {
    register<bit<16>>(VIPS) next;

    apply {
        next.read(index, (bit<32>)vip_id);
        if (index >= pool_size) {
            index = 0; // past the end, or beyond it since the pool has shrunk
        }
        next.write((bit<32>)vip_id, index + 1);
    }
}

// Connections or handshakes. An entry: fingerprint (32) | last seen, in ticks (16) | in use (1) | unused (15)
control ConnectionTable(inout connection_t connection)(bit<32> size) {
    register<bit<64>>(size) entries;

    apply {
        bit<64> entry;
        bit<1> is_live = 0;
        bit<1> is_own = 0;
        bit<64> new_entry = connection.fingerprint ++ connection.now ++ 1w1 ++ 15w0;
        entries.read(entry, (bit<32>)connection.index);
        if (entry[15:15] == 1 && connection.now - entry[31:16] <= connection.timeout) {
            is_live = 1;
        }
        if (is_live == 1 && entry[63:32] == connection.fingerprint) {
            is_own = 1;
        }

        connection.has_entry = 0;
        connection.is_new_entry = 0;
        if ((connection.op == CONNECTION_LOOKUP || connection.op == CONNECTION_JOIN) && is_own == 1) {
            connection.has_entry = 1;
            if (connection.refresh == 1) {
                entry = new_entry;
            }
        } else if ((connection.op == CONNECTION_CLAIM || connection.op == CONNECTION_JOIN)
            && (is_live == 0 || is_own == 1)) {
            connection.has_entry = 1;
            connection.is_new_entry = 1;
            entry = new_entry;
        } else if (connection.op == CONNECTION_RELEASE && is_own == 1) {
            entry = 0;
        }
        entries.write((bit<32>)connection.index, entry);
    }
}

#define HandshakeTable ConnectionTable

// The SIDs of a table's entries.
control ConnectionSids(inout connection_t connection)(bit<32> size) {
    register<bit<16>>(size) sids;

    apply {
        if (connection.is_new_entry == 1) {
            sids.write((bit<32>)connection.index, connection.sid);
        } else {
            sids.read(connection.sid, (bit<32>)connection.index);
        }
    }
}

// The last server of each hash index (control/recent.p4). An entry: fingerprint (32) | SID (16) | in use (1) | unused (15)
control RecentServers(in bit<1> writes, in bit<16> index, in bit<32> fingerprint, inout sid_t sid, inout bit<1> found) {
    register<bit<64>>(RECENT_SERVERS) entries;

    apply {
        bit<64> entry;
        if (writes == 1) {
            entries.write((bit<32>)index, fingerprint ++ sid ++ 1w1 ++ 15w0);
        } else {
            entries.read(entry, (bit<32>)index);
            if (entry[63:32] == fingerprint && entry[15:15] == 1) {
                found = 1;
                sid = entry[31:16];
            }
        }
    }
}

// The last handshake of each hash index. An entry: fingerprint (32) | unused (15) | in use (1) | last seen, in ticks
// (16)
control RecentHandshakes(in bit<16> index, in bit<32> fingerprint, in tick_t now, out bit<1> is_duplicate) {
    register<bit<64>>(RECENT_HANDSHAKES) entries;

    apply {
        bit<64> entry;
        entries.read(entry, (bit<32>)index);
        is_duplicate = 0;
        // TCP clients wait up to 32 s before their last but one SYN (RFC 6298, 5.5).
        if (entry[63:32] == fingerprint && entry[16:16] == 1 && now - entry[15:0] <= RECENT_TICKS) {
            is_duplicate = 1;
        }
        entries.write((bit<32>)index, fingerprint ++ 15w0 ++ 1w1 ++ now);
    }
}

#endif
