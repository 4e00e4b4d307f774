// SPDX-License-Identifier: Apache-2.0
//! Finds mask bits that many ternary entries have in common.

use super::entries::Entries;
use super::hash;
use super::tuple::{Masks, Tuple, covers, masked};
use crate::program::key::KeyShape;

/// Minimum number of entries of a new tuple.
const WORTH: usize = 64;
/// Maximum number of entries to count that agree in all bits of a tuple.
const AGREE: usize = 4;
/// Every `SAMPLE`-th entry proposes bits, and up to `TRIED` proposals are tried.
const SAMPLE: usize = 4;
const TRIED: usize = 24;
/// Maximum width of a short field. Wider fields usually match by prefix, short ones exactly.
const SHORT: u32 = 16;

/// Number of parts into which a field's prefix is divided, and whether short fields count. With coarser parts, more
/// entries have the bits, but more of them agree in these.
const RELAXED: [(u32, bool); 5] = [(8, true), (4, true), (4, false), (2, true), (2, false)];

/// Returns the bits for the new tuple that takes the most of these entries, if they are enough.
pub(super) fn propose(
    slots: &[u32],
    entries: &Entries,
    shape: &KeyShape,
    tuples: &[Tuple],
) -> Option<Masks> {
    let mut wishes: Vec<Masks> = Vec::new();
    for &slot in slots.iter().step_by(SAMPLE) {
        let masks = entries.masks(slot);
        wishes.push(Masks::from_slice(masks));
        wishes.extend(RELAXED.map(|(parts, short)| relax(masks, parts, short, shape)));
    }
    wishes.sort_unstable();
    let mut counted: Vec<(usize, &Masks)> = wishes
        .chunk_by(|a, b| a == b)
        .map(|c| (c.len(), &c[0]))
        .collect();
    counted.sort_by(|a, b| b.cmp(a));
    let is_new = |m: &Masks| tuples.iter().all(|t| t.len == 0 || t.masks != *m);
    let tried = counted.into_iter().filter(|c| is_new(c.1)).take(TRIED);
    let (taken, masks) = tried.map(|(_, m)| (taken(slots, m, entries), m)).max()?;
    (taken >= WORTH).then(|| masks.clone())
}

/// Returns the number of entries that a tuple with these bits would take, with room for similar ones.
fn taken(slots: &[u32], masks: &[u64], entries: &Entries) -> usize {
    let fits = slots.iter().filter(|&&s| covers(entries.masks(s), masks));
    let mut keys: Vec<u64> = fits
        .map(|&s| hash(masked(entries.values(s), masks)))
        .collect();
    keys.sort_unstable();
    keys.chunk_by(|a, b| a == b)
        .map(|c| c.len().min(AGREE))
        .sum()
}

/// Returns the leading bits of each field that these masks contain, in whole parts of the field.
fn relax(masks: &[u64], parts: u32, short: bool, shape: &KeyShape) -> Masks {
    let mut relaxed: Masks = masks.iter().map(|_| 0).collect();
    for f in &shape.fields {
        let width = f.info.width;
        let mask = f.pick(masks);
        let len = (0..=width).rev().find(|&n| covers(&mask, &f.prefix(n)));
        let part = if width > SHORT {
            width.div_ceil(parts)
        } else {
            width.max(1)
        };
        let len = len.unwrap_or(0) / part * part;
        if width > SHORT || short {
            f.place(&f.prefix(len), &mut relaxed);
        }
    }
    relaxed
}
