// SPDX-License-Identifier: Apache-2.0
//! All tests of the switch in one program, because linking the switch takes long.

mod common;

mod arbitration;
mod batches;
mod bfrt;
mod bfrt_config;
mod bfrt_generator;
mod bfrt_hashes;
mod bfrt_pipes;
mod bfrt_tna;
mod config;
mod constraints;
mod coverage;
mod default_entries;
mod entities;
mod ghost;
mod inside;
mod log;
mod notifications;
mod packet_service;
mod packets;
mod program;
mod reads;
mod reference_model;
mod register_pairs;
mod returning;
mod rings;
mod robustness;
mod role_access;
mod roles;
mod selectors;
mod sources;
mod tables;
mod threads;
mod thrift;
mod tls;
mod translation;
mod veth;
