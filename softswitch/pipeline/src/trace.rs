//! What a packet went through, for those who look inside.

use crate::entry::{ActionCall, EntryKey};
use crate::info::TableId;
use crate::value::Value;

/// One step of a packet's way. Recorded only while [`Pipeline::set_tracing`](crate::Pipeline::set_tracing)
/// is on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// The parser entered a state.
    ParserState(String),
    /// The parser stopped with an error, by its code in [`Info::errors`](crate::Info::errors).
    ParserError(u64),
    /// A table was applied.
    Table {
        /// Which one.
        table: TableId,
        /// The packet's key, one value a field.
        key: Vec<Value>,
        /// The entry that it hit; `None` is a miss.
        entry: Option<EntryKey>,
        /// The action that ran.
        action: Option<ActionCall>,
    },
    /// An action ran without a table.
    Action(ActionCall),
}
