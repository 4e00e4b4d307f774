// SPDX-License-Identifier: Apache-2.0
//! Compiles the interface definitions of P4Runtime, BfRuntime and packets with protox, so that no `protoc` is needed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = protox::compile(
        [
            "p4/v1/p4runtime.proto",
            "p4/bm/dataplane_interface.proto",
            "bfrt/bfruntime.proto",
            "softswitch/v1/trace.proto",
        ],
        ["proto"],
    )?;
    tonic_prost_build::configure()
        .bytes(".p4.v1")
        .codec_path("crate::codec::BytesCodec")
        .compile_fds(files)?;
    Ok(())
}
