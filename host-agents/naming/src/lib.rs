//! Names without lookups (Artemis, sections 3.2 and 3.5): a name becomes an anycast *Service Address* by hashing, and a server's unicast address,
//! once known, is remembered for its `service_ttl`. `docs/naming.md` is the specification; C has it as `libartemis.so` (`include/artemis.h`).

mod address;
mod cache;
#[cfg(target_env = "gnu")]
pub mod ffi;
mod instances;
mod name;
mod settings;

pub use address::{Malformed, ServicePrefix};
pub use cache::{CAPACITY, Cache, LONGEST};
pub use instances::Instances;
pub use name::{Name, NoName};
pub use settings::Settings;
