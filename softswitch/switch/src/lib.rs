// SPDX-License-Identifier: Apache-2.0
//! A software P4 switch around [`softswitch_pipeline`], with network interfaces as ports, exact egress queues and a
//! P4Runtime server. It replaces BMv2's `simple_switch_grpc`.

pub mod address;
pub mod bfrt;
pub mod cli;
pub mod codec;
pub mod coverage;
pub mod dataplane;
mod grpc_unix;
pub mod log;
pub mod metrics;
pub mod notifications;
pub mod p4rt;
pub mod packet_service;
pub mod packet_trace;
pub mod port;
pub mod proto;
pub mod switch;
pub mod thrift;
pub mod tls;
pub mod trace;
