// SPDX-License-Identifier: Apache-2.0
//! `frontage-h3-client`.

use std::fs;

use serde_json::Value;

use crate::testbed::{HttpServer, SIZE, lines, object, sha256};

#[test]
fn get_saves_files_and_reports_downloads() {
    let server = HttpServer::new();
    fs::write(server.folder.join("files/page"), "hello").unwrap();
    let (large, page) = (server.url(SIZE), server.url("page"));
    let output = server.run_client(&["get", &large, &page, "--ca", "cert.pem", "--output", "."]);
    assert!(output.status.success());
    let [large, page] = &lines(&output)[..] else {
        panic!("expected two lines");
    };
    assert_eq!(
        (&large["status"], &large["bytes"]),
        (&200.into(), &SIZE.into())
    );
    assert_eq!(large["sha256"], sha256(&object(SIZE)));
    assert!(fs::read(server.folder.join(SIZE.to_string())).unwrap() == object(SIZE));
    let (handshake, first, total) = (
        large["seconds"]["handshake"].as_f64().unwrap(),
        large["seconds"]["first_byte"].as_f64().unwrap(),
        large["seconds"]["total"].as_f64().unwrap(),
    );
    assert!(0. < handshake && handshake < first && first < total);
    // The second download uses the same connection, from the same port.
    assert_eq!(page["seconds"]["handshake"], Value::Null);
    assert_eq!(page["local"], large["local"]);
    assert_eq!(large["local"][0], large["local"][1]);
    assert_eq!(large["remote"][1], format!("[::1]:{}", server.port));
}

#[test]
fn page_downloads_objects_after_the_page_on_one_connection() {
    let server = HttpServer::new();
    let names: Vec<_> = (0..5).map(|i| format!("picture{i}")).collect();
    for (i, name) in names.iter().enumerate() {
        fs::write(server.folder.join("files").join(name), object(1000 * i)).unwrap();
    }
    let urls: Vec<_> = names.iter().map(|name| server.url(name)).collect();
    let urls = urls.iter().map(String::as_str);
    let fixed = ["page", "--insecure", "--paths", "1", "--output", "."];
    let arguments: Vec<_> = fixed.into_iter().chain(urls).collect();
    let output = server.run_client(&arguments);
    assert!(output.status.success());
    let lines = lines(&output);
    assert_eq!(lines.len(), names.len());
    let seconds = |line: &Value, what| line["seconds"][what].as_f64();
    let (page, objects) = lines.split_first().unwrap();
    assert_eq!(page["url"], server.url("picture0"));
    assert!(seconds(page, "handshake") <= seconds(page, "asked"));
    for line in objects {
        assert_eq!(line["local"][0], page["local"][0]);
        assert_eq!(line["seconds"]["handshake"], Value::Null);
        assert!(seconds(page, "total") <= seconds(line, "asked"));
        assert!(seconds(line, "first_byte") <= seconds(line, "total"));
    }
    for (i, name) in names.iter().enumerate() {
        assert_eq!(
            fs::read(server.folder.join(name)).unwrap(),
            object(1000 * i)
        );
    }
    let elsewhere = "https://[::1]:1/picture0";
    let output = server.run_client(&["page", &server.url("picture0"), elsewhere, "--insecure"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn get_reports_status_certificate_and_url_errors() {
    let server = HttpServer::new();
    let output = server.run_client(&["get", &server.url("nothing"), "--insecure"]);
    assert_eq!(
        (output.status.code(), &lines(&output)[0]["status"]),
        (Some(1), &404.into())
    );
    // The server's certificate does not lead to this CA.
    let other = rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
    fs::write(server.folder.join("other.pem"), other.cert.pem()).unwrap();
    let output = server.run_client(&["get", &server.url(SIZE), "--ca", "other.pem"]);
    assert_eq!(output.status.code(), Some(1));
    let error = lines(&output)[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("certificate"), "{error}");
    let output = server.run_client(&["get", "http://localhost/"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error.contains("invalid URL \"http://localhost/\": use https://"),
        "{error}"
    );
}

#[test]
fn download_survives_port_change() {
    let server = HttpServer::new();
    let output = server.run_client(&[
        "get",
        &server.url(SIZE),
        "--insecure",
        "--rebind-after",
        "100000",
    ]);
    assert!(output.status.success());
    let line = &lines(&output)[0];
    assert_eq!(line["sha256"], sha256(&object(SIZE)));
    assert_ne!(line["local"][0], line["local"][1]);
    assert!(line["seconds"]["handshake"].as_f64() > Some(0.));
}

#[test]
fn load_makes_all_requests_on_its_connections() {
    let server = HttpServer::new();
    let (url, digest) = (server.url(SIZE), sha256(&object(SIZE)));
    let common = [
        "load",
        &url,
        "--insecure",
        "--connections",
        "4",
        "--requests",
        "12",
    ];
    let run = |more: &[&str]| {
        let output = server.run_client(&[&common[..], more].concat());
        (output.status.code(), lines(&output).remove(0))
    };
    let (status, kept) = run(&["--expect", &digest]);
    assert_eq!(
        (status, &kept["requests"], &kept["connections"]),
        (Some(0), &12.into(), &4.into())
    );
    assert_eq!(
        (&kept["bytes"], &kept["failures"]),
        (&(12 * SIZE).into(), &serde_json::json!({}))
    );
    assert!(kept["latency"]["p50"].as_f64() <= kept["latency"]["p99"].as_f64());
    let (status, fresh) = run(&["--reconnect", "--expect", &SIZE.to_string()]);
    assert_eq!(
        (status, &fresh["requests"], &fresh["connections"]),
        (Some(0), &12.into(), &12.into())
    );
    let (status, wrong) = run(&["--expect", &(SIZE + 1).to_string()]);
    assert_eq!(
        (status, &wrong["requests"], &wrong["failures"]["corrupt"]),
        (Some(1), &0.into(), &12.into())
    );
}

#[test]
fn load_counts_failures_by_reason_and_runs_for_its_time() {
    let server = HttpServer::new();
    let url = server.url("nothing");
    let arguments = [
        "load",
        &url,
        "--insecure",
        "--connections",
        "2",
        "--seconds",
        "0.2",
    ];
    let output = server.run_client(&arguments);
    let summary = lines(&output).remove(0);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        summary["failures"]["status 404"].as_u64().unwrap() > 0,
        "{summary}"
    );
    assert!(summary["seconds"].as_f64().unwrap() >= 0.2);
}

#[test]
fn plan_replays_the_arrivals_of_its_client() {
    let server = HttpServer::new();
    let mut plan = "index,time,client,size,wire_size,closing\n".to_owned();
    for (index, closing) in ["fin", "rst", "idle"].into_iter().enumerate() {
        plan += &format!("{index},0.{index},0,{SIZE},{SIZE},{closing}\n");
    }
    // An arrival of another client, a missing object, and an object with wrong content.
    plan += "3,0.3,1,1,1,fin\n4,0.3,0,1,1,fin\n5,0.3,0,5,5,fin\n";
    fs::write(server.folder.join("files/5"), "wrong").unwrap();
    fs::write(server.folder.join("plan.csv"), plan).unwrap();
    let port = server.port.to_string();
    let fixed = "plan --plan plan.csv --client 0 --address ::1 --content period --start-ns 1000 --insecure --port";
    let output = server.run_client(&fixed.split(' ').chain([port.as_str()]).collect::<Vec<_>>());
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let mut outcomes: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    outcomes.sort();
    let results: Vec<_> = outcomes
        .iter()
        .map(|fields| (fields[0], fields[1]))
        .collect();
    let expected = [
        ("0", "ok"),
        ("1", "ok"),
        ("2", "ok"),
        ("4", "status 404"),
        ("5", "corrupt"),
    ];
    assert_eq!(results, expected);
    for (i, fields) in outcomes[..3].iter().enumerate() {
        let n: Vec<u64> = fields[3..]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let [due, started, connected, first, finished, received, port] = n[..] else {
            panic!("expected ten fields: {fields:?}");
        };
        assert_eq!(
            (due, received),
            (1000 + i as u64 * 100_000_000, SIZE as u64)
        );
        assert!(due < started && started < connected && connected < first && first < finished);
        assert!(port > 0);
    }
}
