// SPDX-License-Identifier: Apache-2.0
use super::*;

fn parse_error(text: &str) -> String {
    let error = parse::<Config>(Path::new("agent.toml"), text)
        .unwrap_err()
        .to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

const HEAD: &str = "listen = ['[::]:443']\ncertificate = 'c.pem'\nprivate_key = 'k.pem'\n";

#[test]
fn parse_errors_name_line_and_reason() {
    let cookie = "sid = 1\nserver_prefix = '2001:db8::/64'\ncookie_prefix = '2001:db8:1::/64'\nport = 443\nkeys = 'k'\n";
    for (tail, expected) in [
        (
            "unproven_handshakes = 3\n",
            "agent.toml:4: unproven_handshakes: renamed: use max_unvalidated_handshakes",
        ),
        ("listen = 3\n", "agent.toml:4: "),
        ("lisen = 3\n", "agent.toml:4: unknown field `lisen`"),
        (
            "congestion = 'reno'\n",
            "agent.toml:4: unknown variant `reno`, expected `cubic` or `bbr`",
        ),
        (
            "[[route]]\npath = '/'\norigin = 'https://x/'\n",
            "agent.toml:6: invalid origin \"https://x/\"",
        ),
        (
            &format!("[cookie]\n{cookie}bandwidth = '9'\n"),
            "agent.toml:10: invalid bandwidth \"9\"",
        ),
        (
            &format!("[cookie]\n{}", cookie.replace("1::/64", "1::1/64")),
            "agent.toml:7: invalid prefix \"2001:db8:1::1/64\"",
        ),
        (
            &format!("[cookie]\n{}", cookie.replace("sid = 1", "sid = 70000")),
            "agent.toml:5: invalid value: integer `70000`",
        ),
    ] {
        let error = parse_error(&format!("{HEAD}{tail}"));
        assert!(
            error.starts_with(expected),
            "{error} does not start with {expected}"
        );
    }
}

#[test]
fn missing_files_and_invalid_routes_are_rejected() {
    let folder = std::env::temp_dir().join(format!("cclb7-quic-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("agent.toml");
    let error = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let error = load(&path).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.display()), "")
    };
    assert_eq!(
        error(&format!("{HEAD}route = []\n")),
        "agent.toml:2: c.pem: no such file"
    );
    std::fs::write(folder.join("c.pem"), "").unwrap();
    std::fs::write(folder.join("k.pem"), "").unwrap();
    let handoff = "certificate = 'c.pem'\nprivate_key = 'k.pem'\nca = 'c.pem'\nservers = []\n";
    assert_eq!(
        error(&format!(
            "{HEAD}route = []\n[handoff]\n{handoff}[moves]\norder = 'order.toml'\n"
        )),
        "agent.toml:10: moves: missing [cookie]: without it, real servers respond from one address only"
    );
    assert!(error(&format!("{HEAD}route = []\n")).starts_with("agent.toml: route: missing"));
    for (route, expected) in [
        (
            "path = '/'",
            "route: needs exactly one of directory, origin and real_servers",
        ),
        (
            "path = '/'\ndirectory = 'www'",
            "directory: www: no such directory",
        ),
        (
            "path = 'x'\ndirectory = '.'",
            "path: invalid prefix \"x\": must begin with /",
        ),
    ] {
        assert_eq!(
            error(&format!("{HEAD}\n[[route]]\n{route}\n")),
            format!("agent.toml:5: {expected}")
        );
    }
    let route = "path = '/'\ndirectory = '.'";
    for (log, expected) in [("log", folder.join("log")), ("-", "-".into())] {
        let whole = format!("access_log = '{log}'\n{HEAD}\n[[route]]\n{route}\n");
        std::fs::write(&path, whole).unwrap();
        assert_eq!(load(&path).unwrap().access_log, Some(expected));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn invalid_handoffs_are_rejected() {
    let folder = std::env::temp_dir().join(format!("cclb7-quic-handoff-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for file in ["c.pem", "k.pem"] {
        std::fs::write(folder.join(file), "").unwrap();
    }
    let path = folder.join("agent.toml");
    for (server, fields, expected) in [
        (
            "weight = 0",
            "",
            Some("weight: invalid weight 0: must be between 1 and 256"),
        ),
        (
            "weight = 256",
            "max_request_body = '4MB'\nhealth = { path = '/ok' }",
            None,
        ),
        (
            "weight = 1",
            "max_request_body = '5MB'",
            Some("max_request_body: too large: must be at most 4 MiB"),
        ),
        ("weight = 1", "single_path = 'proxy'", None),
        (
            "weight = 1",
            "single_path = 'auto'",
            Some("unknown variant `auto`, expected one of `fastest`, `delegate`, `proxy`"),
        ),
        (
            "weight = 1",
            "health = { path = 'ok' }",
            Some("health: invalid path \"ok\": must begin with /"),
        ),
        (
            "weight = 1",
            "health = { path = '/ok', failures = 0 }",
            Some("health: failures: must be at least 1"),
        ),
    ] {
        let text = format!(
            "{HEAD}[handoff]\ncertificate = 'c.pem'\nprivate_key = 'k.pem'\nca = 'c.pem'\n\
             servers = [{{ name = 'a.test', address = '[::1]:1', origin = 'http://[::1]:2', {server} }}]\n{fields}\n\
             [[route]]\npath = '/'\nreal_servers = {{ policy = 'random' }}\n"
        );
        std::fs::write(&path, text).unwrap();
        let error = load(&path).err().map(|error| error.to_string());
        match (&error, expected) {
            (None, None) => {}
            (Some(error), Some(expected)) => assert!(error.contains(expected), "{error}"),
            _ => panic!("{server} {fields}: {error:?}"),
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
