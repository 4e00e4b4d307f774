// SPDX-License-Identifier: Apache-2.0
//! Compiles the P4Runtime interface definitions with protox, so that no `protoc` is needed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = protox::compile(["p4/v1/p4runtime.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .bytes(".p4.v1")
        .compile_fds(files)?;
    Ok(())
}
