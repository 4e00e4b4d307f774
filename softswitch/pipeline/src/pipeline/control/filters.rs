// SPDX-License-Identifier: Apache-2.0
//! Low-pass filters and random early detection.

use super::no_such;
use crate::entry::{EntryKey, FilterConfig};
use crate::error::StateError;
use crate::info::{FilterId, FilterInfo};
use crate::pipeline::Pipeline;

type Result<T> = std::result::Result<T, StateError>;

/// A cell of a filter: its index, or the entry that it belongs to.
#[derive(Debug, Clone, Copy)]
pub enum FilterCell<'a> {
    /// A cell of an indirect filter.
    Index(usize),
    /// The cell of an entry of a direct filter's table.
    Entry(&'a EntryKey),
}

impl Pipeline {
    fn filter_cell(&self, id: FilterId, cell: FilterCell) -> Result<(&FilterInfo, usize)> {
        let info = self.program().info().filters.get(id.index());
        let info = info.ok_or_else(|| no_such("filter", id.0))?;
        let index = match (cell, info.table) {
            (FilterCell::Index(index), None) if index < info.size => index,
            (FilterCell::Index(index), None) => {
                return Err(StateError::IndexOutOfRange {
                    what: format!("filter {}", info.name),
                    index,
                    size: info.size,
                });
            }
            (FilterCell::Entry(key), Some(table)) => self.table(table)?.1.find(key)? as usize,
            _ => {
                return Err(StateError::Invalid {
                    what: format!("filter {}", info.name),
                    reason: "an index needs an indirect filter, an entry a direct one".to_owned(),
                });
            }
        };
        Ok((info, index))
    }

    /// Returns the configuration of a cell of a filter, if it was configured.
    pub fn filter(&self, id: FilterId, cell: FilterCell) -> Result<Option<FilterConfig>> {
        let (_, index) = self.filter_cell(id, cell)?;
        let cell = self.state().externs.filters[id.index()].get(index);
        Ok(cell.and_then(|f| f.config().copied()))
    }

    /// Configures a cell of a filter; with `None`, the output is the input, and nothing is dropped.
    pub fn set_filter(
        &mut self,
        id: FilterId,
        cell: FilterCell,
        config: Option<FilterConfig>,
    ) -> Result<()> {
        let (info, _) = self.filter_cell(id, cell)?;
        let curve = config.and_then(|c| c.drop_curve);
        if curve.is_some_and(|c| c.max < c.min || !(0.0..=1.0).contains(&c.max_probability)) {
            return Err(StateError::Invalid {
                what: format!("filter {}", info.name),
                reason: "the upper threshold must not be below the lower one, nor the probability above 1".to_owned(),
            });
        }
        self.change(|p| {
            let (_, index) = p.filter_cell(id, cell)?;
            let cells = &mut p.core.state.externs.filters[id.index()];
            if index >= cells.len() {
                cells.resize_with(index + 1, Default::default);
            }
            cells[index].configure(config);
            Ok(())
        })
    }
}
