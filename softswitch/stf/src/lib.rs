//! STF tests (p4c's simple test framework) on a pipeline, in process, with no interfaces.
//!
//! An STF file says what the control plane does (`add`, `setdefault`, `mirroring_add`, ...), which packets
//! come in (`packet PORT HEX`) and which must go out (`expect PORT HEX`, `*` for any digit, `$` for the end).

mod difference;
mod entries;
mod pattern;
mod program;
mod run;
mod script;

pub use difference::Difference;
pub use program::{Compiled, compile, load};
pub use run::run;
pub use script::{Line, parse};
