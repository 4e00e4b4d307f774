// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::path::PathBuf;

use clap::Parser;

const EXAMPLE: &str = "\
Example:
  softswitch-cli --addr 127.0.0.1:9559 < s1-commands.txt
  echo 'table_dump ipv4_lpm' | softswitch-cli --json

`help` lists the commands. The exit status is 0 if all commands succeeded, 1 if one failed, and 2 if an option is wrong.";

/// Control a P4 switch with the commands of BMv2's simple_switch_CLI, over P4Runtime.
#[derive(Debug, Clone, Parser)]
#[command(name = "softswitch-cli", version, after_help = EXAMPLE, max_term_width = 100)]
pub struct Options {
    /// A file of commands, one per line; without it, standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Address of the P4Runtime server: HOST:PORT or unix:PATH
    #[arg(long, default_value = "127.0.0.1:9559", value_name = "ADDRESS")]
    pub addr: String,

    /// P4Runtime device id
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub device_id: u64,

    /// Election id, with which the first command that writes becomes primary
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = election_id)]
    pub election_id: u128,

    /// Print results that are data as one line of JSON each
    #[arg(long)]
    pub json: bool,

    /// The options of TLS
    #[command(flatten)]
    pub tls: TlsOptions,
}

/// Options of TLS.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsOptions {
    /// Connect with TLS
    #[arg(long)]
    pub ssl: bool,

    /// Certificates of authorities (PEM), to verify the server's certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "ssl",
        required_if_eq("ssl", "true")
    )]
    pub cacert: Option<PathBuf>,

    /// Certificate chain of this client (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["ssl", "private_key"])]
    pub cert: Option<PathBuf>,

    /// Private key of this client (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["ssl", "cert"])]
    pub private_key: Option<PathBuf>,

    /// Name in the server's certificate, if it is not the host of --addr
    #[arg(long, value_name = "NAME", requires = "ssl")]
    pub server_name: Option<String>,
}

fn election_id(text: &str) -> Result<u128, String> {
    match text.parse() {
        Ok(0) => Err("election id 0 is never primary: use 1 or more".into()),
        Ok(id) => Ok(id),
        Err(_) => Err("use an integer below 2^128".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(line.split(' '))
    }

    #[test]
    fn defaults_are_those_of_softswitch() {
        let options = parse("softswitch-cli").unwrap();
        assert_eq!(
            (options.addr.as_str(), options.device_id),
            ("127.0.0.1:9559", 0)
        );
        assert_eq!(options.election_id, 1);
    }

    #[test]
    fn rejects_options_that_do_not_fit() {
        for line in [
            "softswitch-cli --election-id 0",
            "softswitch-cli --election-id x",
            "softswitch-cli --ssl",
            "softswitch-cli --cacert ca.pem",
            "softswitch-cli --ssl --cacert ca.pem --cert c.pem",
            "softswitch-cli a b",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
