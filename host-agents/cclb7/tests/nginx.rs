// SPDX-License-Identifier: Apache-2.0
//! Debian's unmodified nginx with the module, and curl as the client.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{SERVER, Testbed, privileged, sh, wait_for};
use frontage_testkit::require;

const HTTP: u16 = 8080;
const HTTPS: u16 = 8443;
const SIZES: [usize; 3] = [700, 300_000, 20_000_000];
const MODULE: &str = "ngx_http_cloudcookie_filter_module.so";

/// Build the module once. Return `None` if nginx or its source is missing.
fn module() -> Option<PathBuf> {
    for (needed, package) in [
        ("/usr/sbin/nginx", "nginx"),
        ("/usr/share/nginx/src/conf_flags", "nginx-dev"),
    ] {
        if !require(
            Path::new(needed).exists(),
            needed,
            &format!("apt install {package}"),
        ) {
            return None;
        }
    }
    let build = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("nginx-module");
    sh(&format!(
        "flock {0}.lock make -s -C {1} nginx BUILD={0}",
        build.display(),
        env!("CARGO_MANIFEST_DIR")
    ));
    Some(build.join(MODULE))
}

/// Return a testbed with nginx, and the folder of its files.
fn served(name: &str, agent: bool) -> Option<(Testbed, PathBuf)> {
    let module = (privileged()).then(module)??;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("nginx-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for size in SIZES {
        fs::write(folder.join(size.to_string()), noise(size)).unwrap();
    }
    sh(&format!(
        "cd {} && openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=test 2>&1",
        folder.display()
    ));
    let configuration = format!(
        "load_module {module};
        user root; worker_processes 2; daemon off; pid {0}/pid; error_log {0}/error.log warn;
        events {{ worker_connections 512; }}
        http {{
            access_log off; cloudcookie on; root {0};
            client_body_temp_path {0}/body; proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/fastcgi;
            uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;
            server {{
                listen {HTTP};
                location /chunked/ {{ alias {0}/; gzip on; gzip_types *; gzip_min_length 0; }}
                location /off/ {{ alias {0}/; cloudcookie off; }}
            }}
            server {{ listen {HTTPS} ssl http2; ssl_certificate {0}/cert.pem; ssl_certificate_key {0}/key.pem; }}
        }}",
        folder.display(),
        module = module.display()
    );
    let path = folder.join("nginx.conf");
    fs::write(&path, configuration).unwrap();
    let mut testbed = Testbed::new(true);
    if agent {
        testbed.attach(&[HTTP, HTTPS]);
    }
    testbed.serve(
        HTTP,
        &[
            "nginx",
            "-c",
            path.to_str().unwrap(),
            "-p",
            folder.to_str().unwrap(),
        ],
    );
    Some((testbed, folder))
}

/// Return incompressible bytes.
fn noise(size: usize) -> Vec<u8> {
    let mut state = size as u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..size).map(|_| next()).collect()
}

fn curl(testbed: &Testbed, arguments: &str) -> Child {
    Command::new("ip")
        .args([
            "netns",
            "exec",
            &testbed.client(),
            "curl",
            "-skS",
            "--no-progress-meter",
            "--compressed",
            "--max-time",
            "30",
        ])
        .args(arguments.split_whitespace())
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl must be installed: apt install curl")
}

fn fetch(testbed: &Testbed, arguments: &str) -> Vec<u8> {
    let output = curl(testbed, arguments).wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "curl {arguments}: {}",
        output.status
    );
    output.stdout
}

fn idle(testbed: &Testbed) -> bool {
    testbed.loads(HTTP) == (0, 0) && testbed.loads(HTTPS) == (0, 0)
}

#[test]
fn every_kind_of_response_arrives_completely_and_leaves_no_load() {
    let Some((testbed, folder)) = served("kinds", true) else {
        return;
    };
    for size in SIZES {
        let body = fs::read(folder.join(size.to_string())).unwrap();
        for (options, port) in [
            ("http:--http1.1", HTTP),
            ("http:--http1.0", HTTP),
            ("https:--http1.1", HTTPS),
            ("https:--http2", HTTPS),
        ] {
            let (scheme, option) = options.split_once(':').unwrap();
            let url = format!("{scheme}://{SERVER}:{port}/{size}");
            assert!(
                fetch(&testbed, &format!("{option} {url}")) == body,
                "{url} {option}"
            );
            // Two requests on one connection, and a HEAD request.
            let twice = fetch(&testbed, &format!("{option} {url} {url}"));
            assert!(
                twice.len() == 2 * size && twice.ends_with(&body),
                "{url} {option}"
            );
            fetch(&testbed, &format!("{option} -I {url}"));
        }
        let url = format!("http://{SERVER}:{HTTP}/chunked/{size}");
        assert!(fetch(&testbed, &url) == body, "{url}");
        fetch(&testbed, &format!("http://{SERVER}:{HTTP}/missing"));
    }
    wait_for("loads to be zero", || idle(&testbed));
    // Only packets that arrived after their socket was closed.
    assert!(testbed.packets("echo_zeroed") * 100 < testbed.packets("echo_restored"));
}

#[test]
fn loads_follow_running_and_aborted_transfers() {
    let Some((testbed, _folder)) = served("aborts", true) else {
        return;
    };
    let size = SIZES[2];
    let urls = [
        format!("http://{SERVER}:{HTTP}/{size}"),
        format!("https://{SERVER}:{HTTPS}/{size} --http2"),
        format!("https://{SERVER}:{HTTPS}/{size} --http1.1"),
        format!("http://{SERVER}:{HTTP}/chunked/{size}"),
    ];
    let mut transfers: Vec<Child> = (0..20)
        .map(|i| {
            curl(
                &testbed,
                &format!("--limit-rate 200k -o /dev/null {}", urls[i % urls.len()]),
            )
        })
        .collect();
    let total = || testbed.loads(HTTP).0 + testbed.loads(HTTPS).0;
    wait_for("all to run", || total() == 20);
    assert!(testbed.loads(HTTP).1 >= 5 && testbed.loads(HTTPS).1 == 10);
    for transfer in transfers.iter_mut().step_by(2) {
        transfer.kill().unwrap();
        transfer.wait().unwrap();
    }
    wait_for("aborted ones to leave", || total() == 10);
    for transfer in transfers.iter_mut().skip(1).step_by(2) {
        transfer.kill().unwrap();
        transfer.wait().unwrap();
    }
    wait_for("loads to be zero", || idle(&testbed));
}

#[test]
fn concurrent_http2_streams_are_counted_individually() {
    let Some((testbed, _folder)) = served("streams", true) else {
        return;
    };
    let url = format!("https://{SERVER}:{HTTPS}/{}", SIZES[2]);
    let parallel = format!(
        "--http2 --parallel --limit-rate 200k -o /dev/null {url} -o /dev/null {url} -o /dev/null {url}"
    );
    let mut transfer = curl(&testbed, &parallel);
    wait_for("three streams", || testbed.loads(HTTPS) == (3, 3));
    transfer.kill().unwrap();
    transfer.wait().unwrap();
    wait_for("loads to be zero", || idle(&testbed));
}

#[test]
fn directive_off_disables_reports() {
    let Some((testbed, _folder)) = served("off", true) else {
        return;
    };
    let mut transfer = curl(
        &testbed,
        &format!(
            "--limit-rate 200k -o /dev/null http://{SERVER}:{HTTP}/off/{}",
            SIZES[2]
        ),
    );
    wait_for("bytes to flow", || {
        testbed
            .state()
            .flows()
            .iter()
            .any(|(_, f)| f.acked > 100_000)
    });
    assert_eq!(testbed.loads(HTTP), (0, 0));
    transfer.kill().unwrap();
    transfer.wait().unwrap();
}

#[test]
fn nginx_without_an_agent_serves_and_warns_once() {
    let Some((testbed, folder)) = served("alone", false) else {
        return;
    };
    for _ in 0..10 {
        assert_eq!(
            fetch(&testbed, &format!("http://{SERVER}:{HTTP}/{}", SIZES[0])).len(),
            SIZES[0]
        );
    }
    let log = fs::read_to_string(folder.join("error.log")).unwrap();
    let warnings = log
        .lines()
        .filter(|line| line.contains("cloudcookie: no agent"))
        .count();
    assert!(
        (1..=2).contains(&warnings),
        "one warning for each worker: {log}"
    );
}
