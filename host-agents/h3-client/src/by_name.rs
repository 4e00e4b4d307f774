// SPDX-License-Identifier: Apache-2.0
//! Downloads from services by name, with the time of each step: the library of `frontage-get`.

mod fetch;
mod lookup;
mod proxied;
mod race;
mod report;
mod transfer;

pub use fetch::{Fetch, Route};
pub use lookup::{AddressSource, Lookup};
pub use proxied::Proxy;
pub use race::{Winner, race};
pub use report::{Report, Seconds};
