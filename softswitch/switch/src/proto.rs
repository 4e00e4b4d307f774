// SPDX-License-Identifier: Apache-2.0
//! Messages and services generated from the interface definitions in `proto/`.

#![allow(missing_docs, clippy::all, clippy::pedantic)]

pub mod bfrt {
    tonic::include_proto!("bfrt_proto");
}

pub mod google {
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

pub mod p4 {
    pub mod bm {
        tonic::include_proto!("p4.bm");
    }
    pub mod config {
        pub mod v1 {
            tonic::include_proto!("p4.config.v1");
        }
    }
    pub mod v1 {
        tonic::include_proto!("p4.v1");
    }
}

pub mod softswitch {
    pub mod v1 {
        tonic::include_proto!("softswitch.v1");
    }
}
