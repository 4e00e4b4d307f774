// SPDX-License-Identifier: Apache-2.0
//! `signals.c`, a C program linked with the library, against the test vectors of all implementations.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use frontage_cookie::vectors::{self, Vectors};
use frontage_cookie::{cid, ipv6};
use test_requirements::require;

const SERVER_PREFIX: u64 = 0x2001_0db8_0000_0007;
const COOKIE_PREFIX: u64 = 0x2001_0db8_ffff_0000;

/// The compiled program and a folder for its key files.
struct Program {
    path: PathBuf,
    folder: PathBuf,
}

impl Program {
    fn compile(name: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("quic-c-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("signals");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(root.join("include"))
            .arg(root.join("tests/it/signals.c"))
            .arg("-o")
            .args([&path, &library()]);
        let Ok(output) = cc.output() else {
            require(false, "cc", "apt install gcc");
            return None;
        };
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Some(Self { path, folder })
    }

    fn write_keys(&self, keys: &[(u32, &str)]) -> PathBuf {
        let file = self.folder.join("keys.toml");
        let key =
            |(id, secret): &(u32, &str)| format!("[[keys]]\nid = {id}\nsecret = \"{secret}\"\n");
        std::fs::write(&file, keys.iter().map(key).collect::<String>()).unwrap();
        file
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.path);
        command.env("LD_LIBRARY_PATH", library().parent().unwrap());
        command.args(arguments).output().unwrap()
    }

    /// Run the program with this key, and return the lines that it prints.
    fn lines(&self, key: (u32, &str), arguments: &[&str]) -> Vec<String> {
        let keys = self.write_keys(&[key]);
        let arguments = [&[arguments[0], keys.to_str().unwrap()], &arguments[1..]].concat();
        let output = self.run(&arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Return the library's path, which is beside the test's executable.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    here.parent().unwrap().join("libfrontage_quic_c.so")
}

fn committed() -> Vectors {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/cookie-vectors.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn address(prefix: u64, id: &str) -> String {
    let id = u64::from_str_radix(id, 16).unwrap();
    Ipv6Addr::from_bits(u128::from(prefix) << 64 | u128::from(id)).to_string()
}

#[test]
fn preferred_address_is_the_static_cookie_of_the_vectors() {
    let Some(program) = Program::compile("static") else {
        return;
    };
    let cases: Vec<_> = committed()
        .ipv6
        .into_iter()
        .filter(|c| !c.dynamic)
        .collect();
    assert!(cases.len() >= 20);
    for c in cases {
        let lines = program.lines((c.key_id, &c.secret), &["preferred", &c.sid.to_string()]);
        let expected = format!("{} 443", address(COOKIE_PREFIX, &c.interface_id));
        assert_eq!(lines, [expected], "{c:?}");
    }
}

/// A server has no more flows in N_FF than in N_AF, unlike some vectors.
#[test]
fn source_address_is_the_dynamic_cookie_of_the_vectors() {
    let Some(program) = Program::compile("dynamic") else {
        return;
    };
    let cases = committed().ipv6.into_iter();
    let cases: Vec<_> = cases
        .filter(|c| c.dynamic && c.n_af > 0 && c.n_ff <= c.n_af && c.n_af < 1 << 20)
        .collect();
    assert!(cases.len() >= 7);
    for c in cases {
        let numbers =
            [c.sid.into(), c.x.into(), c.rpt_us, c.n_af, c.n_ff].map(|n: u64| n.to_string());
        let arguments: Vec<&str> = std::iter::once("source")
            .chain(numbers.iter().map(String::as_str))
            .collect();
        let lines = program.lines((c.key_id, &c.secret), &arguments);
        assert_eq!(lines, [address(SERVER_PREFIX, &c.interface_id)], "{c:?}");
    }
}

#[test]
fn connection_ids_are_those_of_the_codec() {
    let Some(program) = Program::compile("ids") else {
        return;
    };
    let cases: Vec<_> = committed()
        .cid
        .into_iter()
        .filter(|c| c.form == "sealed")
        .collect();
    assert!(cases.len() >= 16);
    for c in cases {
        let key = ipv6::Key::new(c.key_id, &vectors::secret(&c.secret));
        let lines = program.lines((c.key_id, &c.secret), &["ids", &c.sid.to_string()]);
        let mut nonces = Vec::new();
        for (line, sid) in lines.iter().zip([c.sid, c.sid, c.sid ^ 1]) {
            let id = vectors::bytes(line);
            let bits = u64::from_be_bytes(id[1..9].try_into().unwrap());
            let (opened, nonce) = key
                .open_cid(bits)
                .expect("the key of the vector sealed the id");
            assert_eq!(opened, sid, "{c:?}");
            let random = id[9..].try_into().unwrap();
            assert_eq!(cid::sealed(&key, sid, nonce, random).to_vec(), id);
            nonces.push(nonce);
        }
        assert_eq!(nonces.len(), 3);
        assert_ne!(nonces[0], nonces[1]);
    }
}

/// The program checks everything that needs no vector: batches, loads, rotation, IPv4, foreign addresses, errors.
#[test]
fn batches_rotation_and_errors() {
    let Some(program) = Program::compile("checks") else {
        return;
    };
    let keys = program.write_keys(&[(4, "00112233445566778899aabbccddeeff")]);
    let output = program.run(&["checks", keys.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}
