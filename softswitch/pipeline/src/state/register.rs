// SPDX-License-Identifier: Apache-2.0
//! Register arrays.

use num_bigint::BigUint;

use crate::phv::mask64;
use crate::word::Word;

/// A register array: unsigned cells of one width.
#[derive(Debug, Clone)]
pub(crate) struct Register {
    width: u32,
    cells: Cells,
}

#[derive(Debug, Clone)]
enum Cells {
    /// Up to 64 bits.
    Narrow(Vec<u64>),
    Wide(Vec<BigUint>),
}

impl Register {
    pub(crate) fn new(width: u32, size: usize) -> Self {
        let cells = if width <= 64 {
            Cells::Narrow(vec![0; size])
        } else {
            Cells::Wide(vec![BigUint::ZERO; size])
        };
        Self { width, cells }
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

    /// Returns a cell; zero beyond the end.
    pub(crate) fn get<W: Word>(&self, index: usize) -> W {
        match &self.cells {
            Cells::Narrow(c) => W::from_u64(c.get(index).copied().unwrap_or(0)),
            Cells::Wide(c) => c.get(index).map_or_else(|| W::from_u64(0), W::from_biguint),
        }
    }

    /// Writes the low bits of `v`; nothing beyond the end.
    #[inline]
    pub(crate) fn set64(&mut self, index: usize, v: u64) {
        match &mut self.cells {
            Cells::Narrow(c) => {
                if let Some(cell) = c.get_mut(index) {
                    *cell = v & mask64(self.width);
                }
            }
            Cells::Wide(_) => self.set_big(index, v.into()),
        }
    }

    /// Writes `v`, which must fit the width; nothing beyond the end.
    pub(crate) fn set_big(&mut self, index: usize, v: BigUint) {
        match &mut self.cells {
            Cells::Narrow(c) => {
                if let Some(cell) = c.get_mut(index) {
                    *cell = v.iter_u64_digits().next().unwrap_or(0);
                }
            }
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
            Cells::Narrow(c) => c.get(index).map(|v| v.to_be_bytes().to_vec()),
            Cells::Wide(c) => c.get(index).map(BigUint::to_bytes_be),
        }
    }

    /// Sets all cells to zero, in place.
    pub(crate) fn reset(&mut self) {
        match &mut self.cells {
            Cells::Narrow(c) => c.fill(0),
            Cells::Wide(c) => c.fill(BigUint::ZERO),
        }
    }

    /// Returns the cells if they have up to 64 bits.
    pub(crate) fn narrow_mut(&mut self) -> &mut [u64] {
        match &mut self.cells {
            Cells::Narrow(c) => c,
            Cells::Wide(_) => &mut [],
        }
    }
}
