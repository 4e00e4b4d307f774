// SPDX-License-Identifier: Apache-2.0
//! A standard HTTP/3 client: the library of `frontage-h3-client` and `frontage-get`.
//!
//! [`client`] opens connections and sends requests. [`get`], [`page`], [`load`] and [`plan`] are the commands of
//! `frontage-h3-client`; [`by_name`] is `frontage-get`.

mod body;
pub mod by_name;
pub mod client;
mod download;
mod error;
pub mod get;
pub mod load;
mod moves;
mod observer;
pub mod page;
pub mod plan;
mod preferred_address;
mod socket;
mod tls;

use anyhow::Result;

pub use error::Error;
pub use socket::Socket;
pub use tls::Trust;

/// Runs `work` on one thread and raises the limit of open files.
///
/// Benchmarks use these clients, so the other cores are left to the program under test.
pub fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    frontage_daemon::process::raise_open_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(tokio::task::LocalSet::new().run_until(work))
}
