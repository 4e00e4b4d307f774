// SPDX-License-Identifier: Apache-2.0
//! Register arrays.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use num_bigint::BigUint;

use crate::phv::mask64;
use crate::value::Value;
use crate::word::Word;

/// A register array: unsigned cells of one width.
#[derive(Debug)]
pub(crate) struct Register {
    width: u32,
    /// The value of cells at the start, after a reset, and beyond the end.
    initial: BigUint,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    /// Up to 64 bits. Packets of several threads access them without order, so a program that reads and writes the same
    /// register holds the [lock of registers](super::serial::Serial).
    Narrow(Vec<AtomicU64>),
    Wide(Vec<BigUint>),
}

impl Register {
    pub(crate) fn new(width: u32, size: usize, initial: &Value) -> Self {
        let initial = BigUint::from_bytes_be(initial.as_bytes());
        let cells = if width <= 64 {
            Cells::Narrow(narrow(low(&initial), size))
        } else {
            Cells::Wide(vec![initial.clone(); size])
        };
        Self {
            width,
            initial,
            cells,
        }
    }

    /// Makes sure that there is a cell at an index.
    pub(crate) fn grow(&mut self, index: usize) {
        let size = self.len().max(index + 1);
        match &mut self.cells {
            Cells::Narrow(c) => c.resize_with(size, || AtomicU64::new(low(&self.initial))),
            Cells::Wide(c) => c.resize(size, self.initial.clone()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.cells {
            Cells::Narrow(c) => c.len(),
            Cells::Wide(c) => c.len(),
        }
    }

    /// Returns true if cells have up to 64 bits.
    pub(crate) fn is_narrow(&self) -> bool {
        matches!(self.cells, Cells::Narrow(_))
    }

    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// Returns a cell; the initial value beyond the end.
    pub(crate) fn get<W: Word>(&self, index: usize) -> W {
        match &self.cells {
            Cells::Narrow(c) => match c.get(index) {
                Some(cell) => W::from_u64(cell.load(Ordering::Relaxed)),
                None => W::from_biguint(&self.initial),
            },
            Cells::Wide(c) => W::from_biguint(c.get(index).unwrap_or(&self.initial)),
        }
    }

    /// Writes the low bits of `v` to a cell of up to 64 bits; nothing to wider ones and beyond the end.
    #[inline]
    pub(crate) fn set64(&self, index: usize, v: u64) {
        if let Some(cell) = self.narrow().get(index) {
            cell.store(v & mask64(self.width), Ordering::Relaxed);
        }
    }

    /// Writes `v`, which must fit the width; nothing beyond the end.
    pub(crate) fn set_big(&mut self, index: usize, v: BigUint) {
        match &mut self.cells {
            Cells::Narrow(_) => self.set64(index, low(&v)),
            Cells::Wide(c) => {
                if let Some(cell) = c.get_mut(index) {
                    *cell = v;
                }
            }
        }
    }

    /// Returns a cell as big-endian bytes.
    pub(crate) fn bytes(&self, index: usize) -> Option<Vec<u8>> {
        match &self.cells {
            Cells::Narrow(c) => {
                let cell = c.get(index)?.load(Ordering::Relaxed);
                Some(cell.to_be_bytes().to_vec())
            }
            Cells::Wide(c) => c.get(index).map(BigUint::to_bytes_be),
        }
    }

    /// Sets all cells to the initial value, in place.
    pub(crate) fn reset(&mut self) {
        match &mut self.cells {
            Cells::Narrow(c) => {
                let initial = low(&self.initial);
                c.iter_mut().for_each(|cell| *cell.get_mut() = initial);
            }
            Cells::Wide(c) => c.fill(self.initial.clone()),
        }
    }

    /// Sets a cell to the initial value; nothing beyond the end.
    pub(crate) fn reset_cell(&mut self, index: usize) {
        self.set_big(index, self.initial.clone());
    }

    /// Returns the cells if they have up to 64 bits.
    pub(crate) fn narrow(&self) -> &[AtomicU64] {
        match &self.cells {
            Cells::Narrow(c) => c,
            Cells::Wide(_) => &[],
        }
    }
}

/// Returns `count` cells with a value. The kernel does not allocate the memory of cells with zero until they are written.
fn narrow(value: u64, count: usize) -> Vec<AtomicU64> {
    const { assert!(align_of::<u64>() == align_of::<AtomicU64>()) };
    let mut cells = ManuallyDrop::new(vec![value; count]);
    let (len, capacity) = (cells.len(), cells.capacity());
    // SAFETY: an atomic number has the size, the alignment and the representation of the number, and the vector that
    // allocated the memory does not free it.
    unsafe { Vec::from_raw_parts(cells.as_mut_ptr().cast(), len, capacity) }
}

/// Returns the low 64 bits.
fn low(v: &BigUint) -> u64 {
    v.iter_u64_digits().next().unwrap_or(0)
}
