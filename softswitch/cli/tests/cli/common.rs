// SPDX-License-Identifier: Apache-2.0
//! A switch in the test's process, and sessions with it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use softswitch::address::Address;
use softswitch::switch::{Config, Switch};
use softswitch::tls::Tls;
use softswitch_cli::execute::execute;
use softswitch_cli::options::Options;
use softswitch_cli::output::Answer;
use softswitch_cli::session::Session;
use tokio::runtime::Runtime;

/// A running switch, without a program at first.
pub struct TestSwitch {
    runtime: Runtime,
    switch: Option<Switch>,
    pub address: String,
}

impl TestSwitch {
    pub fn start() -> Self {
        Self::start_with(None)
    }

    pub fn start_with(tls: Option<Arc<Tls>>) -> Self {
        let runtime = Runtime::new().unwrap();
        let address = || Address::Tcp("127.0.0.1:0".into());
        let config = Config {
            // Without interfaces, all port numbers are valid.
            packets: Some(address()),
            tls,
            ..Config::new(address())
        };
        let switch = runtime.block_on(Switch::start(config)).unwrap();
        Self {
            address: switch.grpc.to_string(),
            switch: Some(switch),
            runtime,
        }
    }

    /// Starts a switch with the program `features.p4`, and a session.
    pub fn with_features() -> (Self, Session) {
        let switch = Self::start();
        let mut session = switch.session("");
        let (json, p4info) = (program("features.json"), program("features.p4info.txtpb"));
        let load = format!(
            "load_new_config_file {} {}",
            json.display(),
            p4info.display()
        );
        ok(&mut session, &load);
        ok(&mut session, "swap_configs");
        (switch, session)
    }

    pub fn options(&self, more: &str) -> Options {
        let args = ["softswitch-cli", "--addr", &self.address];
        Options::parse_from(args.into_iter().chain(more.split_whitespace()))
    }

    pub fn session(&self, more: &str) -> Session {
        Session::connect(&self.options(more)).unwrap()
    }
}

impl Drop for TestSwitch {
    fn drop(&mut self) {
        if let Some(switch) = self.switch.take() {
            self.runtime.block_on(switch.stop());
        }
    }
}

/// Returns the path of a test program of the switch.
pub fn program(name: &str) -> PathBuf {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../switch/tests/programs");
    PathBuf::from(tests).join(name)
}

/// Executes a command that must succeed.
pub fn ok(session: &mut Session, line: &str) -> Answer {
    let result = execute(session, line).expect("an empty line");
    result.unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Executes a command that must fail; returns the error.
pub fn refused(session: &mut Session, line: &str) -> String {
    match execute(session, line).expect("an empty line") {
        Ok(answer) => panic!("{line}: succeeded: {}", answer.text),
        Err(error) => error.to_string(),
    }
}
