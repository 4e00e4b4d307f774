// SPDX-License-Identifier: Apache-2.0
//! Arbitrary input must not make the compiler panic or hang.

mod common;

use proptest::prelude::*;

const PROGRAMS: [&str; 5] = ["router", "instances", "language", "parsing", "externs"];

fn source(name: &str) -> String {
    let path = common::tests_dir()
        .join("programs")
        .join(format!("{name}.p4"));
    std::fs::read_to_string(path).expect("the test program can be read")
}

/// Tokens that are likely to change the meaning of a program.
const TOKENS: [&str; 24] = [
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    ";",
    ",",
    "bit<8>",
    "apply",
    "state start",
    "exit;",
    "return;",
    "0",
    "-1",
    "=",
    "&&&",
    "..",
    "in",
    "table t {",
    "header h { }",
    "#define X X",
    "error",
    "8w255",
];

fn mutate(text: &str, edits: &[(usize, usize, u8)]) -> String {
    let mut words: Vec<String> = text
        .split_inclusive([' ', '\n', ';', '(', ')', '<', '.'])
        .map(str::to_string)
        .collect();
    for (at, other, kind) in edits {
        let n = words.len();
        if n == 0 {
            break;
        }
        let (i, j) = (at % n, other % n);
        match kind % 4 {
            0 => {
                words.remove(i);
            }
            1 => words.swap(i, j),
            2 => {
                let copy = words[j].clone();
                words.insert(i, copy);
            }
            _ => words.insert(i, format!(" {} ", TOKENS[other % TOKENS.len()])),
        }
    }
    words.concat()
}

/// Compiles on a stack like that of the command line tool.
fn survives(text: String) {
    let worker = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || {
            common::compile_text("t.p4", &text);
        });
    worker
        .expect("a thread can be made")
        .join()
        .expect("the compiler does not panic");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text(text in "\\PC{0,400}") {
        survives(text);
    }

    #[test]
    fn random_tokens(picks in proptest::collection::vec(0..TOKENS.len(), 0..80)) {
        survives(picks.iter().map(|i| TOKENS[*i]).collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn mutated_programs(
        program in 0..PROGRAMS.len(),
        edits in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 1..6),
    ) {
        survives(mutate(&source(PROGRAMS[program]), &edits));
    }
}

#[test]
fn deep_nesting_is_rejected() {
    let text = format!(
        "const bit<8> x = {}1{};",
        "(".repeat(50_000),
        ")".repeat(50_000)
    );
    survives(text);
    survives(format!("control c() {{ apply {} }}", "{".repeat(50_000)));
}

#[test]
fn recursive_instantiation_is_rejected() {
    let text = "control c() { c() again; apply { again.apply(); } }";
    survives(text.to_string());
}

/// Small programs that expand to huge ones.
#[test]
fn exploding_programs_are_rejected() {
    let macros: String = (0..40)
        .map(|i| format!("#define A{} A{i} A{i}\n", i + 1))
        .collect();
    let structs: String = (0..60)
        .map(|i| format!("struct s{} {{ s{i} a; s{i} b; }}\n", i + 1))
        .collect();
    let squares: String = (0..60)
        .map(|i| format!("const int a{} = a{i} * a{i};\n", i + 1))
        .collect();
    for (text, message) in [
        (
            format!("#define A0 x x\n{macros}A40"),
            "macro expansion is too large",
        ),
        (
            format!("struct s0 {{ bit<8> x; }}\n{structs}const int x = s60.minSizeInBits();"),
            "there are more than 65536 fields",
        ),
        (format!("const int a0 = 3;\n{squares}"), "is too large"),
        (
            format!("const int x = {}1;", "1+".repeat(100_000)),
            "the expression is too long",
        ),
        (
            format!("#if {}1{}\n#endif", "(".repeat(50_000), ")".repeat(50_000)),
            "too long",
        ),
        ("const bit<2147483648> x = 1;".into(), "not a valid size"),
        (
            "#include \"/dev/zero\"".into(),
            "cannot find the included file",
        ),
        ("#include \"/\"".into(), "cannot find the included file"),
    ] {
        let (_, messages) = common::compile_text("t.p4", &text);
        assert!(
            messages.contains(message),
            "wanted {message}, got\n{messages}"
        );
    }
}

/// Small statements that expand to huge ones.
#[test]
fn exploding_inlining_is_rejected() {
    let actions: String = (1..40)
        .map(|i| {
            format!(
                "action a{i}(inout bit<8> x) {{ a{0}(x); a{0}(x); }}\n",
                i - 1
            )
        })
        .collect();
    let loops = "for (bit<8> i in 1..4) { ".repeat(30) + "meta.m = 1;" + &"}".repeat(30);
    for body in [
        format!("action a0(inout bit<8> x) {{ }}\n{actions}apply {{ a39(meta.m); }}"),
        format!("apply {{ {loops} }}"),
    ] {
        let messages = common::ingress(&body);
        assert!(
            messages.contains("too large after inlining all calls"),
            "{messages}"
        );
    }
}
