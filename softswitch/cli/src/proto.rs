// SPDX-License-Identifier: Apache-2.0
//! Messages and the client generated from P4Runtime's interface definitions.

#![allow(dead_code, missing_docs, clippy::all, clippy::pedantic)]

pub mod google {
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

pub mod p4 {
    pub mod config {
        pub mod v1 {
            tonic::include_proto!("p4.config.v1");
        }
    }
    pub mod v1 {
        tonic::include_proto!("p4.v1");
    }
}
