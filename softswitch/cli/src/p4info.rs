// SPDX-License-Identifier: Apache-2.0
//! P4Info from text.

use std::path::{Path, PathBuf};

use prost_reflect::{DescriptorPool, DynamicMessage};

use crate::error::{Error, Result};
use crate::proto::p4::config::v1::P4Info;

/// Reads P4Info in the text format, as compilers write it.
///
/// # Errors
/// If the file cannot be read, or is not P4Info.
pub fn read(path: &Path) -> Result<P4Info> {
    let file = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|e| Error::new(format!("cannot read P4Info {file}: {e}")))?;
    let bytes: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/p4runtime.bin"));
    let pool = DescriptorPool::decode(bytes).expect("the build script wrote the descriptors");
    let descriptor = pool.get_message_by_name("p4.config.v1.P4Info");
    let descriptor = descriptor.expect("the definitions contain P4Info");
    let invalid = |e: String| Error::new(format!("{file}: invalid P4Info: {e}"));
    let message = DynamicMessage::parse_text_format(descriptor, &text);
    let message = message.map_err(|e| invalid(e.to_string()))?;
    message.transcode_to().map_err(|e| invalid(e.to_string()))
}

/// Returns the file with the P4Info of a program in BMv2 JSON, by the names that the P4 tutorials, p4-utils and p4c's
/// users give it.
///
/// # Errors
/// If there is no file with one of these names.
pub fn beside(json: &Path) -> Result<PathBuf> {
    let names = [
        "p4info.txtpb",
        "p4info.txt",
        "p4.p4info.txtpb",
        "p4.p4info.txt",
        "p4info.pb.txt",
    ];
    let stem = json.file_stem().unwrap_or_default().to_string_lossy();
    let same_stem = names.iter().map(|name| format!("{stem}.{name}"));
    let mut files = same_stem
        .chain([format!("{stem}_p4rt.txt")])
        .map(|name| json.with_file_name(name));
    files.find(|file| file.is_file()).ok_or_else(|| {
        let json = json.display();
        Error::new(format!(
            "no P4Info beside {json}: P4Runtime needs it; name it after the program, or name the file: \
             load_new_config_file {json} FILE"
        ))
    })
}
