//! Requests handed to real servers, which answer clients themselves (QDSR; `docs/handoff.md`).

mod config;
mod counts;
mod lending;
mod life;
mod owner;
mod policy;
mod servers;
mod session;
mod sessions;
mod streams;
mod told;

pub use config::Handoff as Config;
pub use lending::{Given, Handed, Lending};
pub use owner::Owner;
pub use policy::Policy;
pub use servers::{Pool, Server, Servers, key};
