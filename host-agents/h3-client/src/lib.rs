//! A standard HTTP/3 client: what `frontage-h3-client` and `frontage-get` stand on.

pub mod artemis;
pub mod client;
mod content;
mod follow;
pub mod get;
mod line;
pub mod load;
pub mod page;
pub mod plan;
mod socket;
mod tls;

use anyhow::Result;

pub use socket::Socket;
pub use tls::Trust;

/// Runs `work` on one thread, with as many sockets as this process may have: what is measured with these clients has the other cores.
pub fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    frontage_program::limits::raise_open_files();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(tokio::task::LocalSet::new().run_until(work))
}
