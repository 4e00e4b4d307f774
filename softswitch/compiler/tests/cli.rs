// SPDX-License-Identifier: Apache-2.0
//! The command line.

mod common;

use std::path::PathBuf;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_softswitch-p4c");
    Command::new(program)
        .args(args)
        .output()
        .expect("the compiler starts")
}

/// A fresh folder for one test's files.
fn folder(test: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("softswitch-p4c-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary folder can be made");
    dir
}

#[test]
fn writes_json_and_p4info() {
    let dir = folder("writes");
    let path = |name: &str| dir.join(name).display().to_string();
    let (json, text) = (path("out.json"), path("out.p4info.txt"));
    let files = format!("{text},{}", path("out.txtpb"));
    let program = common::tests_dir()
        .join("programs/router.p4")
        .display()
        .to_string();
    let out = run(&[
        "--std",
        "p4-16",
        "-DCPU_PORT=192",
        "-o",
        &json,
        "--p4runtime-files",
        &files,
        &program,
    ]);
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let json = std::fs::read_to_string(json).expect("the JSON is there");
    assert!(
        json.contains("0x00c0"),
        "the macro of the command line is used"
    );
    let info = std::fs::read_to_string(text).expect("the P4Info is there");
    assert!(info.contains("name: \"RouterIngress.routes\""));
    assert_eq!(
        std::fs::read_to_string(path("out.txtpb")).expect("the second one, too"),
        info
    );
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn writes_nothing_if_there_is_an_error() {
    let dir = folder("error");
    let program = dir.join("bad.p4");
    std::fs::write(&program, "const bit<8> x = y;\n").expect("the program can be written");
    let json = dir.join("out.json");
    let out = run(&[
        "-o",
        &json.display().to_string(),
        &program.display().to_string(),
    ]);
    assert_eq!(out.status.code(), Some(1));
    let messages = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        messages.contains("bad.p4:1:18: error: 'y' is not declared"),
        "{messages}"
    );
    assert!(!json.exists());
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn accepts_command_lines_of_p4c() {
    let dir = folder("habits");
    let path = |name: &str| dir.join(name).display().to_string();
    let program = common::tests_dir().join("programs/router.p4");
    let entries = path("entries.txtpb");
    let arguments = format!(
        "--target bmv2 --arch v1model -DCPU_PORT=192 -UCPU_PORT --Wdisable=unused --maxErrorCount 3\n\
         --p4runtime-format text --p4runtime-file {} --p4runtime-entries-files {entries} -o {}",
        path("info"),
        dir.display()
    );
    std::fs::write(dir.join("arguments"), arguments).expect("the file can be written");
    let out = run(&[
        &format!("@{}", path("arguments")),
        &program.display().to_string(),
    ]);
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    // In a folder, the JSON has the name of the program.
    let json = std::fs::read_to_string(path("router.json")).expect("the JSON is there");
    assert!(!json.contains("0x00c0"), "-U must undefine the macro");
    let text = std::fs::read_to_string(path("info")).expect("the P4Info is there");
    assert!(text.contains("p4.config.v1.P4Info"));
    let text = std::fs::read_to_string(entries).expect("the entries are there");
    assert!(text.contains("p4.v1.WriteRequest"));
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn warnings_can_be_errors_or_suppressed() {
    let dir = folder("warnings");
    let program = dir.join("warn.p4");
    let router = common::tests_dir().join("programs/router.p4");
    let router = std::fs::read_to_string(router).expect("the program can be read");
    std::fs::write(&program, format!("#warning careful\n{router}")).expect("it can be written");
    let program = program.display().to_string();
    let include = format!("-I{}", common::tests_dir().join("programs").display());
    let run = |option: &str| run(&[&include, option, &program]);
    assert!(String::from_utf8_lossy(&run("--Wwarn").stderr).contains("careful"));
    assert!(run("--Wdisable").stderr.is_empty());
    assert_eq!(run("--Werror").status.code(), Some(1));
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn error_names_unreadable_file() {
    let out = run(&["/nowhere/at/all.p4"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("/nowhere/at/all.p4"));
}

#[test]
fn help_has_an_example() {
    let out = run(&["--help"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("Example:"));
}

/// As with p4c, P4Info does not depend on the target.
#[test]
fn program_unsupported_by_target_still_has_p4info() {
    let dir = folder("unsupported");
    let path = |name: &str| dir.join(name).display().to_string();
    let (program, json, info) = (path("router.p4"), path("out.json"), path("out.txtpb"));
    let programs = common::tests_dir().join("programs");
    for name in ["router.p4", "headers.p4"] {
        let text = std::fs::read_to_string(programs.join(name)).expect("the program is there");
        let text = text.replace("bit<8> ttl;", "bit<7> ttl;");
        std::fs::write(dir.join(name), text).expect("it can be written");
    }
    let out = run(&["-o", &json, "--p4runtime-files", &info, &program]);
    assert!(!out.status.success());
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("needs whole bytes"), "{said}");
    assert!(!std::path::Path::new(&json).exists());
    let info = std::fs::read_to_string(info).expect("the P4Info is there");
    assert!(info.contains("name: \"RouterIngress.routes\""));
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn p4info_format_follows_file_name() {
    let dir = folder("formats");
    let path = |name: &str| dir.join(name).display().to_string();
    let router = common::tests_dir()
        .join("programs/router.p4")
        .display()
        .to_string();
    let files = format!("{},{}", path("info.json"), path("info.bin"));
    let (one, entries) = (path("one"), path("entries.json"));
    let all = [
        "--p4runtime-files",
        &files,
        "--p4runtime-file",
        &one,
        "--p4runtime-entries-files",
        &entries,
        &router,
    ];
    assert!(run(&all).status.success());
    let read = |name: &str| std::fs::read(dir.join(name)).expect("the file is there");
    let json: serde_json::Value = serde_json::from_slice(&read("info.json")).expect("it is JSON");
    assert_eq!(json["pkgInfo"]["arch"], "v1model");
    assert_eq!(json["tables"][0]["matchFields"][0]["matchType"], "TERNARY");
    assert_eq!(json["tables"][0]["size"], "256", "64 bits are a string");
    // Field 1, pkg_info, of 9 bytes; in it field 5, arch, of 7.
    let binary = read("info.bin");
    assert!(binary.starts_with(b"\x0a\x09\x2a\x07v1model"), "{binary:?}");
    assert_eq!(
        read("one"),
        binary,
        "--p4runtime-file without a format must be binary"
    );
    let entries: serde_json::Value =
        serde_json::from_slice(&read("entries.json")).expect("it is JSON");
    assert!(entries.is_object());

    let unknown = run(&["--p4runtime-files", &path("info.xml"), &router]);
    assert!(!unknown.status.success());
    let message = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        message.contains("info.xml: unknown extension: use .txtpb, .txt, .json or .bin"),
        "{message}"
    );
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn warnings_are_selected_by_kind() {
    let dir = folder("kinds");
    let program = dir.join("t.p4");
    let text = std::fs::read_to_string(common::tests_dir().join("programs/router.p4"))
        .expect("the program is there");
    std::fs::write(&program, text + "\nconst bit<4> forgotten = 4w16;\n")
        .expect("it can be written");
    let program = program.display().to_string();
    let include = common::tests_dir().join("programs").display().to_string();
    let kinds = |options: &[&str]| {
        let out = run(&[&["-I", &include, "-DCPU_PORT=192"], options, &[&program]].concat());
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let tag = |kind: &str| match (
            said.contains(&format!("[--Wwarn={kind}]")),
            said.contains(&format!("[--Werror={kind}]")),
        ) {
            (true, false) => 'w',
            (false, true) => 'e',
            _ => '-',
        };
        (tag("unused"), tag("overflow"), out.status.success())
    };
    assert_eq!(kinds(&[]), ('w', 'w', true));
    assert_eq!(kinds(&["--Wdisable"]), ('-', '-', true));
    assert_eq!(kinds(&["--Wdisable=unused"]), ('-', 'w', true));
    assert_eq!(kinds(&["--Wdisable=unused,overflow"]), ('-', '-', true));
    assert_eq!(kinds(&["--Wdisable", "--Wwarn=unused"]), ('w', '-', true));
    assert_eq!(kinds(&["--Werror=overflow"]), ('w', 'e', false));
    assert_eq!(
        kinds(&["--Werror", "--Wwarn=overflow", "--Wdisable=unused"]),
        ('-', 'w', true)
    );
    assert_eq!(
        kinds(&["--Werror=unused", "--Wdisable=unused"]),
        ('-', 'w', true)
    );
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

/// Runs the program under another name in a folder.
fn run_as(name: &str, dir: &std::path::Path, args: &[&str]) -> Output {
    let link = dir.join(name);
    if !link.exists() {
        let program = env!("CARGO_BIN_EXE_softswitch-p4c");
        std::os::unix::fs::symlink(program, &link).expect("a link can be made");
    }
    Command::new(link)
        .args(args)
        .current_dir(dir)
        .output()
        .expect("the compiler starts")
}

/// Copies `router.p4` and the file that it includes into a folder.
fn copy_router(dir: &std::path::Path) {
    for name in ["router.p4", "headers.p4"] {
        let from = common::tests_dir().join("programs").join(name);
        std::fs::copy(from, dir.join(name)).expect("the file can be copied");
    }
}

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn driver_writes_into_its_output_folder() {
    let dir = folder("driver");
    copy_router(&dir);
    let out = run_as(
        "p4c",
        &dir,
        &[
            "--target",
            "bmv2",
            "-a",
            "v1model",
            "-x",
            "p4-16",
            "--Wdisable",
            "unused",
            "-o",
            "a/b",
            "router.p4",
        ],
    );
    assert!(out.status.success(), "{}", stderr(&out));
    assert!(dir.join("a/b/router.json").is_file());
    let out = run_as("p4c", &dir, &["router.p4"]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert!(dir.join("router.json").is_file());
    // p4c-bm2-ss writes a file, and none without -o.
    let out = run_as("p4c-bm2-ss", &dir, &["-o", "out", "router.p4"]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert!(dir.join("out").is_file());
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn options_without_effect_are_reported_once() {
    let program = common::tests_dir().join("programs/router.p4");
    let program = program.display().to_string();
    let out = run(&[
        "--pp", "x.p4", "-O2", "-T", "a:3", "-T", "b:3", "-vv", &program,
    ]);
    assert!(out.status.success(), "{}", stderr(&out));
    let text = stderr(&out);
    let notes: Vec<&str> = text.lines().filter(|l| l.starts_with("note: ")).collect();
    assert_eq!(
        notes,
        [
            "note: --pp has no effect: this compiler does not print programs",
            "note: -T has no effect: this compiler has no log",
            "note: --debug has no effect: this compiler has no log",
            "note: -O has no effect: there is one level",
        ],
        "{text}"
    );
}

#[test]
fn driver_creates_the_folder_of_the_preprocessed_program() {
    let dir = folder("preprocess-into");
    std::fs::write(dir.join("main.p4"), "const bit<8> X = 1;\n").expect("it can be written");
    let out = run_as("p4c", &dir, &["-E", "-o", "new/folder", "main.p4"]);
    assert!(out.status.success(), "{}", stderr(&out));
    let written = std::fs::read_to_string(dir.join("new/folder/main.p4i"));
    assert!(written.expect("it was written").contains("const"));
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn preprocessed_program_compiles_to_the_same_result() {
    let dir = folder("preprocess");
    let source = common::tests_dir().join("programs/router.p4");
    let source = source.display().to_string();
    let out = run(&["-E", "-DCPU_PORT=192", &source]);
    assert!(out.status.success(), "{}", stderr(&out));
    let text = String::from_utf8(out.stdout).expect("the program is text");
    assert!(
        text.contains(&format!("# 1 \"{source}\"")) || text.contains(&source),
        "{text}"
    );
    assert!(!text.contains("#include") && !text.contains("CPU_PORT"));
    let program = dir.join("router.p4");
    std::fs::write(&program, text).expect("the program can be written");
    // The JSON contains lines, but P4Info does not.
    let [first, second] = [
        (source.as_str(), &["-DCPU_PORT=192"][..]),
        (program.to_str().expect("a text"), &[]),
    ]
    .map(|(program, more)| {
        let [json, info] =
            ["out.json", "out.txtpb"].map(|name| dir.join(name).display().to_string());
        let mut args = vec!["-o", &json, "--p4runtime-files", &info, program];
        args.extend(more);
        let out = run(&args);
        assert!(out.status.success(), "{}", stderr(&out));
        assert!(std::fs::exists(json).expect("the folder can be read"));
        std::fs::read_to_string(info).expect("the P4Info is there")
    });
    assert_eq!(first, second);
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn dependencies_are_make_rules() {
    let dir = folder("dependencies");
    let main = "#include <core.p4>\n#include \"a.p4\"\n#include \"missing.p4\"\n";
    std::fs::write(dir.join("main.p4"), main).expect("the program can be written");
    std::fs::write(dir.join("a.p4"), "").expect("the file can be written");
    let out = run_as("p4c-bm2-ss", &dir, &["-M", "-MG", "-MT", "x", "main.p4"]);
    assert!(out.status.success(), "{}", stderr(&out));
    assert_eq!(
        String::from_utf8_lossy(&out.stdout),
        "x: main.p4 \\\n a.p4\n"
    );
    let out = run_as("p4c-bm2-ss", &dir, &["-M", "main.p4"]);
    assert!(!out.status.success());
    assert!(stderr(&out).contains("missing.p4"), "{}", stderr(&out));
    let program = common::tests_dir().join("programs/router.p4");
    let out = run_as(
        "p4c-bm2-ss",
        &dir,
        &[
            "-MD",
            "-MF",
            "x.d",
            "-o",
            "x.json",
            &program.display().to_string(),
        ],
    );
    assert!(out.status.success(), "{}", stderr(&out));
    let rule = std::fs::read_to_string(dir.join("x.d")).expect("the rule is there");
    assert!(rule.starts_with("router.o: "), "{rule}");
    assert!(dir.join("x.json").is_file());
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn accepts_every_option_of_p4c() {
    let lists: serde_json::Value =
        serde_json::from_str(include_str!("../../../conformance/options.json"))
            .expect("it is JSON");
    let dir = folder("options");
    copy_router(&dir);
    let mut count = 0;
    for program in ["p4c", "p4c-bm2-ss"] {
        for option in lists[program].as_array().expect("a list of options") {
            let value = match option["names"][0].as_str().expect("a name") {
                "--p4runtime-format" => "text",
                "--p4runtime-files" | "--p4runtime-entries-files" => "out.txtpb",
                "--std" => "p4-16",
                "-a" | "--arch" => "v1model",
                "-b" | "--target" => "bmv2",
                "-MF" => "out.d",
                "-I" | "-o" => "out",
                "--metrics" => "all",
                _ => "X",
            };
            for name in option["names"].as_array().expect("a list of names") {
                let name = name.as_str().expect("a name");
                let mut args = vec![name];
                if option["value"] == "required" {
                    args.push(value);
                }
                // GCC refuses it without -M, too.
                if name == "-MG" {
                    args.push("-M");
                }
                args.push("router.p4");
                let out = run_as(program, &dir, &args);
                assert!(out.status.success(), "{program} {args:?}: {}", stderr(&out));
                if option["value"] == "optional" {
                    let with_value = format!("{name}=unused");
                    let out = run_as(program, &dir, &[&with_value, "router.p4"]);
                    assert!(out.status.success(), "{with_value}: {}", stderr(&out));
                }
                count += 1;
            }
        }
    }
    assert!(count > 80, "only {count} options were tried");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}
