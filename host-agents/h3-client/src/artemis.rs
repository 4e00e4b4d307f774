//! Connections to services by name, and how long each step took.

mod fetch;
mod race;
mod report;
mod resolve;
mod through;

pub use fetch::{Fetch, Way};
pub use race::{Race, race};
pub use report::{Report, Seconds};
pub use resolve::{Found, Lookup};
pub use through::Proxy;
