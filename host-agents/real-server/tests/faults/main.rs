//! What may go wrong between a client, its balancer and real servers, with real programs on a whole network.

#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

mod asked;
mod drain;
mod forged;
mod keys;
mod lies;
mod moves;
mod paths;
mod renamed;
mod unheard;
mod unsized_answers;
