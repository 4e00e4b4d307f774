// SPDX-License-Identifier: Apache-2.0
//! Compiles the definitions of P4Info and P4Runtime, by which the text of messages becomes JSON and binary.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    let proto = "../switch/proto";
    println!("cargo:rerun-if-changed={proto}");
    let mut files = protox::compile(["p4/v1/p4runtime.proto"], [proto])?;
    // A map is a list of its entries, in any order. As lists they keep the order that they are written in.
    for file in &mut files.file {
        let nested = file
            .message_type
            .iter_mut()
            .flat_map(|m| &mut m.nested_type);
        for options in nested.filter_map(|entry| entry.options.as_mut()) {
            options.map_entry = None;
        }
    }
    let path = PathBuf::from(env::var("OUT_DIR")?).join("p4runtime.bin");
    fs::write(path, files.encode_to_vec())?;
    Ok(())
}
