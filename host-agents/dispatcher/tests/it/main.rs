//! The dispatcher: its engine and tables in process, and the program in a network namespace.

mod choices;
mod flights;
mod memory;
mod network;
mod tables;
mod world;
