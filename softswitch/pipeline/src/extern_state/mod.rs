// SPDX-License-Identifier: Apache-2.0
//! State of the externs: counters, meters, registers.

pub mod meter;
mod register;

pub(crate) use register::Register;
