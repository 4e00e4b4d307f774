//! State of the externs: counters, meters, registers.

pub mod meter;
mod register;

pub(crate) use register::Register;
