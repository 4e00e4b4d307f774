//! The library as others see it: vectors, C, processes that share a cache.

mod c;
mod shared;
mod vectors;
