// SPDX-License-Identifier: Apache-2.0
//! Generates code that looks up the longest prefix of a key in a table's trie (`state::table::trie`).

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value};

use super::generator::{Gen, Result};
use super::lookup::Exits;
use crate::state::table::{MATCHING, MORE, REST, REST_LEN, STRIDE};
use crate::state::view::{TableView, TrieItem, TrieNode};

/// Maximum number of words of a key that native code looks up itself.
const MAX_WORDS: usize = 4;

/// The node with the longest prefix found so far, and the set of its prefixes that match; 0 if none was found.
#[derive(Clone, Copy)]
struct Best {
    node: Value,
    matching: Value,
}

impl Gen<'_, '_> {
    /// Compiles the search for the record number of the entry with the longest prefix of a key; 0 if none matches.
    pub(super) fn find_prefix(&mut self, number: u32, key: &[Value]) -> Result<Value> {
        if key.len() > MAX_WORDS {
            return self.call_find(number, key);
        }
        self.search(number, key, |g, exits| {
            let first = g.c.tables[number as usize].shape.first_bit();
            let used = g.without_first_bits(key, first);
            g.search_trie(number, &used, &exits);
            Ok(())
        })
    }

    /// Compiles a key without its first `n` bits, fewer than 64; zeros follow the last bit.
    fn without_first_bits(&mut self, key: &[Value], n: usize) -> Vec<Value> {
        let mut words = Vec::with_capacity(key.len());
        for (i, &word) in key.iter().enumerate() {
            let mut shifted = self.b.ins().ishl_imm(word, n as i64);
            if let Some(&next) = key.get(i + 1)
                && n != 0
            {
                let low = self.b.ins().ushr_imm(next, 64 - n as i64);
                shifted = self.b.ins().bor(shifted, low);
            }
            words.push(shifted);
        }
        words
    }

    /// Compiles the loop over the nodes on the path of a key.
    fn search_trie(&mut self, number: u32, key: &[Value], exits: &Exits) {
        let [at_node, child, no_child, leaf, no_leaf] = [(); 5].map(|()| self.b.create_block());
        let (root, none) = (self.view(number, offset_of!(TableView, root)), self.int(0));
        let start: Vec<Value> = [&[root, root, none], key].concat();
        for _ in &start {
            self.b.append_block_param(at_node, I64);
        }
        self.jump_to(at_node, &start);

        self.b.switch_to_block(at_node);
        let params = self.b.block_params(at_node).to_vec();
        let (node, key) = (params[0], &params[3..]);
        let earlier = Best {
            node: params[1],
            matching: params[2],
        };
        let chunk = self.b.ins().ushr_imm(key[0], 64 - STRIDE as i64);
        let rest = self.without_first_bits(key, STRIDE);
        let best = self.best(node, chunk, earlier);
        let children = self.load_word(node, offset_of!(TrieNode, children));
        self.branch_if_in(children, chunk, child, no_child);

        self.b.switch_to_block(child);
        let nodes = self.view(number, offset_of!(TableView, nodes));
        let first = self.load_index(node, offset_of!(TrieNode, nodes));
        let at = self.count_below(children, chunk);
        let at = self.b.ins().iadd(first, at);
        let next = self.cell(nodes, at, size_of::<TrieNode>());
        let next: Vec<Value> = [&[next, best.node, best.matching], &rest[..]].concat();
        self.jump_to(at_node, &next);

        self.b.switch_to_block(no_child);
        let leaves = self.load_word(node, offset_of!(TrieNode, leaves));
        self.branch_if_in(leaves, chunk, leaf, no_leaf);

        self.b.switch_to_block(leaf);
        let prefixes = self.load_word(node, offset_of!(TrieNode, prefixes));
        let before = self.b.ins().popcnt(prefixes);
        let at = self.count_below(leaves, chunk);
        let at = self.b.ins().iadd(before, at);
        let item = self.trie_item(number, node, at);
        self.compare_leaf(item, rest[0], no_leaf, exits);

        self.b.switch_to_block(no_leaf);
        self.take_best(number, best, exits);
    }

    /// Compiles the choice between a node's matching prefixes and those of the nodes above.
    fn best(&mut self, node: Value, chunk: Value, earlier: Best) -> Best {
        let sets = self.int(MATCHING.as_ptr() as u64);
        let set = self.cell(sets, chunk, size_of::<u64>());
        let set = self.load_word(set, 0);
        let prefixes = self.load_word(node, offset_of!(TrieNode, prefixes));
        let matching = self.b.ins().band(prefixes, set);
        Best {
            node: self.b.ins().select(matching, node, earlier.node),
            matching: self.b.ins().select(matching, matching, earlier.matching),
        }
    }

    /// Compiles the comparison of the bits in a leaf with those of the key behind the leaf's node. A leaf that does not have all
    /// bits of its entry calls the table.
    fn compare_leaf(&mut self, item: Value, rest: Value, differs: Block, exits: &Exits) {
        let [compare, equal] = [(); 2].map(|()| self.b.create_block());
        let bits = self.load_index(item, offset_of!(TrieItem, rest));
        let len = self.mask(bits, MORE.into());
        let is_longer = self.b.ins().icmp_imm(IntCC::Equal, len, i64::from(MORE));
        self.b.ins().brif(is_longer, exits.call, &[], compare, &[]);
        self.b.switch_to_block(compare);
        let bits = self.b.ins().ushr_imm(bits, i64::from(REST_LEN));
        let key = self.b.ins().ushr_imm(rest, 64 - REST as i64);
        let differing = self.b.ins().bxor(bits, key);
        let most = self.int(REST as u64);
        let unused = self.b.ins().isub(most, len);
        let differing = self.b.ins().ushr(differing, unused);
        self.b.ins().brif(differing, differs, &[], equal, &[]);
        self.b.switch_to_block(equal);
        self.finish_with(item, exits);
    }

    /// Compiles the result of a search that did not end in a leaf.
    fn take_best(&mut self, number: u32, best: Best, exits: &Exits) {
        let found = self.b.create_block();
        let none = self.int(0);
        self.b
            .ins()
            .brif(best.matching, found, &[], exits.done, &[none.into()]);
        self.b.switch_to_block(found);
        let zeros = self.b.ins().clz(best.matching);
        let longest = self.b.ins().irsub_imm(zeros, 63);
        let prefixes = self.load_word(best.node, offset_of!(TrieNode, prefixes));
        let at = self.count_below(prefixes, longest);
        let item = self.trie_item(number, best.node, at);
        self.finish_with(item, exits);
    }

    /// Ends the search with the record of an item.
    fn finish_with(&mut self, item: Value, exits: &Exits) {
        let slot = self.load_index(item, offset_of!(TrieItem, slot));
        // Records are counted from 1.
        let record = self.b.ins().iadd_imm(slot, 1);
        self.jump_to(exits.done, &[record]);
    }

    /// Compiles the address of the item `at` of a node.
    fn trie_item(&mut self, number: u32, node: Value, at: Value) -> Value {
        let items = self.view(number, offset_of!(TableView, items));
        let first = self.load_index(node, offset_of!(TrieNode, items));
        let at = self.b.ins().iadd(first, at);
        self.cell(items, at, size_of::<TrieItem>())
    }

    /// Compiles the number of elements of a set that are less than `n`, which is less than 64.
    fn count_below(&mut self, set: Value, n: Value) -> Value {
        let one = self.int(1);
        let bit = self.b.ins().ishl(one, n);
        let lower = self.b.ins().iadd_imm(bit, -1);
        let below = self.b.ins().band(set, lower);
        self.b.ins().popcnt(below)
    }

    fn branch_if_in(&mut self, set: Value, n: Value, then: Block, other: Block) {
        let shifted = self.b.ins().ushr(set, n);
        let is_in = self.mask(shifted, 1);
        self.b.ins().brif(is_in, then, &[], other, &[]);
    }

    fn jump_to(&mut self, block: Block, values: &[Value]) {
        let values: Vec<BlockArg> = values.iter().map(|&value| value.into()).collect();
        self.b.ins().jump(block, &values);
    }
}
