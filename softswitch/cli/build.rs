// SPDX-License-Identifier: Apache-2.0
//! Compiles the definition of P4Runtime with protox, as a client and for reading P4Info from text.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    let proto = "../switch/proto";
    println!("cargo:rerun-if-changed={proto}");
    let files = protox::compile(["p4/v1/p4runtime.proto"], [proto])?;
    let path = PathBuf::from(env::var("OUT_DIR")?).join("p4runtime.bin");
    fs::write(path, files.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(files)?;
    Ok(())
}
