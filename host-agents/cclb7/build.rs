// SPDX-License-Identifier: Apache-2.0
//! Compile the eBPF programs that the agent embeds, and the one that its tests need.

use std::path::PathBuf;
use std::process::{Command, exit};

const PROGRAMS: [(&str, &str); 2] = [
    ("bpf/cclb7.bpf.c", "cclb7.bpf.o"),
    ("tests/mask.bpf.c", "mask.bpf.o"),
];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=include");
    println!("cargo:rerun-if-changed=tests/mask.bpf.c");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    for (source, object) in PROGRAMS {
        compile(source, &out.join(object));
    }
}

fn compile(source: &str, object: &std::path::Path) {
    let clang = std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang-14".into());
    // The kernel's headers for user space are in a folder named after the host's architecture.
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let status = Command::new(&clang)
        .args([
            "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror",
        ])
        .arg(format!("-I/usr/include/{arch}-linux-gnu"))
        .args(["-c", source, "-o"])
        .arg(object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => fail(&format!(
            "{source}: does not compile (see above): apt install libbpf-dev linux-libc-dev"
        )),
        Err(error) => fail(&format!(
            "cannot run {clang}: {error}: apt install clang-14, or name another clang in BPF_CLANG"
        )),
    }
}

fn fail(why: &str) -> ! {
    eprintln!("frontage-cclb7: {why}");
    exit(1)
}
