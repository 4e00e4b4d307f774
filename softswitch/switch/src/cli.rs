// SPDX-License-Identifier: Apache-2.0
//! The command line: the options of `simple_switch` and `simple_switch_grpc`, and links.

mod limits;
mod log;
mod tls;
mod unused;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};

use crate::address::{Address, NanomsgAddress};
use crate::port::Sockets;
use crate::trace::TraceFormat;
use softswitch_pipeline::Engine;
use softswitch_queue::PortLink;

pub use limits::Limits;
pub use log::LogOptions;
pub use tls::TlsOptions;
pub use unused::Unused;

const EXAMPLE: &str = "\
Example:
  softswitch --no-p4 -i 1@veth1 -i 2@veth2 --device-id 1 \\
      --link 2:rate=100mbit,queue=64kB,delay=5ms -- --grpc-server-addr 127.0.0.1:9559 --cpu-port 510

  starts without a program, which a P4Runtime controller then sets; what leaves by port 2 does so at 100 Mbit/s.

A link's keys, separated by commas (--link PORT:KEY=VALUE,...; a port without --link sends at once):
  rate           bit, kbit, mbit or gbit per second, of the frame from destination address to end of
                 payload
  overhead       B, kB, ... of the rate that a frame takes besides: preamble, check sequence and gap are 24B
  queue          B, kB, KiB, MB or MiB that may wait while a frame is being sent; more are dropped
  queue-packets  packets that may wait (1000, if neither limit is given); larger v1model priorities leave first
  delay          ns, us, ms or s of propagation
  loss           share of the frames lost on the way, such as 0.1% or 0.001, decided by --seed

When it is ready, it prints `grpc-server-addr=ADDRESS` (and `metrics-addr=ADDRESS`) and `ready` to standard output.
It ends with status 0 on SIGTERM or SIGINT, 1 if it fails, 2 if an option is wrong. SIGUSR1 prints the counters.";

/// The P4Runtime server's address if the program is called `simple_switch`, which has no such server: several of them
/// must be able to run side by side.
const FREE_PORT: &str = "127.0.0.1:0";

/// The default port of BMv2's Thrift server, which `simple_switch_CLI` uses by default, too.
const BMV2_THRIFT_PORT: u16 = 9090;

/// A software P4 switch for v1model programs compiled to BMv2 JSON. It accepts the options of
/// simple_switch and simple_switch_grpc; target options may follow `--`, as there.
#[derive(Debug, Parser)]
#[command(
    name = "softswitch",
    version,
    disable_version_flag = true,
    infer_long_args = true,
    after_help = EXAMPLE,
    max_term_width = 100
)]
pub struct Options {
    /// The initial program: BMv2 JSON from p4c or softswitch-p4c
    #[arg(value_name = "PROGRAM.json", required_unless_present_any = ["no_p4", "json_version"])]
    pub program: Option<PathBuf>,

    /// Start without a program; a controller sets it
    #[arg(long)]
    pub no_p4: bool,

    /// Attach a network interface as a port (repeat for more)
    #[arg(short, long, value_name = "PORT@INTERFACE")]
    pub interface: Vec<Interface>,

    /// Sockets of network interfaces
    #[arg(long, value_enum, default_value = "auto", value_name = "KIND")]
    pub sockets: Sockets,

    /// Instead of the network, receive the packets in INTERFACE_in.pcap after SECONDS, and send to INTERFACE_out.pcap
    #[arg(long, value_name = "SECONDS")]
    pub use_files: Option<u64>,

    /// Add a loopback port: packets sent to it are received on it, after its link (repeat for more)
    #[arg(long, value_name = "PORT")]
    pub loopback: Vec<u32>,

    /// P4Runtime device id
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub device_id: u64,

    /// The outgoing link of a port (repeat for more): PORT:rate=100mbit,queue=64kB,delay=5ms,...
    #[arg(long, value_name = "PORT:KEY=VALUE,...")]
    pub link: Vec<PortLink>,

    /// Number of packet threads; each receives on its own ports, at most one per port [default: half of the available
    /// processors]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,

    /// Engine that runs the program; both give the same results
    #[arg(long, value_enum, default_value = "native", value_name = "ENGINE")]
    pub engine: ProgramEngine,

    /// Seed of link loss and of the program's random numbers
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,

    /// Let the clock of packets begin at the time of day (UTC) instead of 0, so that those of several switches agree
    #[arg(long)]
    pub time_of_day: bool,

    /// Address of the P4Runtime server: HOST:PORT (port 0 selects a free one) or unix:PATH; called simple_switch, the
    /// program uses 127.0.0.1:0 by default
    #[arg(long, default_value = "0.0.0.0:9559", value_name = "ADDRESS")]
    pub grpc_server_addr: Address,

    /// Serve metrics for Prometheus at http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_addr: Option<Address>,

    /// Accept packets for any port, and return sent ones, at this address over gRPC (p4.bm.DataplaneInterface),
    /// instead of network interfaces
    #[arg(long, value_name = "ADDRESS", conflicts_with = "loopback")]
    pub dp_grpc_server_addr: Option<Address>,

    /// Address of the BfRuntime server [default for programs of TNA: 0.0.0.0:50052]
    #[arg(long, value_name = "ADDRESS")]
    pub bfrt_grpc_server_addr: Option<Address>,

    /// The BfRuntime schema of the initial program: bf-rt.json from softswitch-p4c --bf-rt-schema
    #[arg(long, value_name = "FILE", requires = "program")]
    pub bfrt_schema: Option<PathBuf>,

    /// Accepted: controllers can replace the program in any case
    #[arg(long, conflicts_with = "disable_swap")]
    pub enable_swap: bool,

    /// Keep the initial program: refuse controllers' forwarding pipeline configs
    #[arg(long)]
    pub disable_swap: bool,

    /// The port for packet-in and packet-out
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u32).range(1..))]
    pub cpu_port: Option<u32>,

    /// Number of pipes of programs for Tofino: port 128 is the first one of pipe 1
    #[arg(long, default_value = "1", value_name = "N", value_parser = pipes())]
    pub pipes: u32,

    /// The port that means "drop"
    #[arg(long, default_value_t = 511, value_name = "PORT")]
    pub drop_port: u32,

    /// The limits against endless loops
    #[command(flatten)]
    pub limits: Limits,

    /// Trace every packet, to standard error or --trace-file; slows the switch down
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub trace: Option<TraceFormat>,

    /// The file for --trace
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub trace_file: Option<PathBuf>,

    /// Count which parts of the program packets reach, in this LCOV file and an HTML page beside it; slows the switch
    /// down
    #[arg(long, value_name = "FILE")]
    pub coverage: Option<PathBuf>,

    /// Capture the packets of each port to INTERFACE_in.pcap and INTERFACE_out.pcap in a directory
    /// [without DIR: the current one]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    pub pcap: Option<PathBuf>,

    /// Print whether packets of the program can run in parallel, and what they share or why they cannot
    #[arg(long, requires = "program", conflicts_with = "no_p4")]
    pub report: bool,

    /// Print the highest version of BMv2 JSON that this switch loads
    #[arg(long)]
    pub json_version: bool,

    /// Print the version of the switch
    #[arg(short = 'v', visible_short_alias = 'V', long, action = clap::ArgAction::Version)]
    pub version: (),

    /// The log.
    #[command(flatten)]
    pub log: LogOptions,

    /// TLS of the P4Runtime server.
    #[command(flatten)]
    pub tls: TlsOptions,

    /// Serve BMv2's Thrift services on a TCP port of all addresses, or of 127.0.0.1 with --grpc-server-ssl. 0 selects a
    /// free one. Called simple_switch or simple_switch_grpc, the program uses 127.0.0.1:9090 by default, if this port
    /// is free
    #[arg(long, value_name = "PORT")]
    pub thrift_port: Option<u16>,

    /// The Thrift port without `--thrift-port`, if the program has a name of BMv2.
    #[arg(skip)]
    pub default_thrift_port: Option<u16>,

    /// Address at which nanomsg subscribers receive digests, idle entries and changes of ports: ipc://PATH or
    /// tcp://HOST:PORT
    /// [default with Thrift: ipc:///tmp/bmv2-DEVICE_ID-notifications.ipc]
    #[arg(long, value_name = "ADDRESS")]
    pub notifications_addr: Option<NanomsgAddress>,

    /// Options without effect.
    #[command(flatten)]
    pub unused: Unused,

    /// Notes about options without effect.
    #[arg(skip)]
    pub notes: Vec<String>,
}

/// A port and its network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The port's number.
    pub port: u32,
    /// The interface's name.
    pub name: String,
}

impl FromStr for Interface {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let expected = "expected PORT@INTERFACE: for example 1@veth1";
        let (port, name) = s.split_once('@').ok_or(expected)?;
        let port = port.parse().map_err(|_| expected)?;
        if name.is_empty() {
            return Err(expected.into());
        }
        Ok(Self {
            port,
            name: name.into(),
        })
    }
}

/// An engine that runs programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgramEngine {
    /// Machine code, compiled when the program is set
    Native,
    /// The interpreter, which is many times slower
    Interpreter,
}

impl From<ProgramEngine> for Engine {
    fn from(engine: ProgramEngine) -> Self {
        match engine {
            ProgramEngine::Native => Self::Native,
            ProgramEngine::Interpreter => Self::Interpreter,
        }
    }
}

/// Returns the parser of numbers of pipes that chips have.
fn pipes() -> impl TypedValueParser<Value = u32> {
    PossibleValuesParser::new(["1", "2", "4"]).try_map(|number| number.parse::<u32>())
}

impl Options {
    /// Parses and checks the command line.
    ///
    /// # Errors
    /// The fault, or the text of `--help` or `--version`; `exit()` prints it and ends the program.
    pub fn from_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        // simple_switch_grpc has two parsers, separated by `--`; here one parser knows all options.
        let mut separators = 0;
        let args: Vec<OsString> = args
            .into_iter()
            .filter(|arg| {
                separators += u32::from(arg == "--");
                arg != "--" || separators > 1
            })
            .collect();
        let program = args.first().map(Path::new).and_then(Path::file_name);
        let is_called = |name: &str| program.is_some_and(|program| program == name);
        let is_simple_switch = is_called("simple_switch");
        let is_bmv2 = is_simple_switch || is_called("simple_switch_grpc");
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(args)?;
        let mut options = Self::from_arg_matches(&matches)?;
        options
            .check()
            .map_err(|message| command.error(clap::error::ErrorKind::ValueValidation, message))?;
        let grpc_source = matches.value_source("grpc_server_addr");
        if is_simple_switch && grpc_source == Some(ValueSource::DefaultValue) {
            options.grpc_server_addr = Address::Tcp(FREE_PORT.into());
        }
        if is_bmv2 && options.thrift_port.is_none() {
            options.default_thrift_port = Some(BMV2_THRIFT_PORT);
        }
        options.notes = unused::notes(&command, &matches);
        options.notes.append(&mut options.tls.notes());
        if options.dp_grpc_server_addr.is_some() && !options.interface.is_empty() {
            options.interface.clear();
            let note =
                "--interface has no effect: --dp-grpc-server-addr replaces network interfaces";
            options.notes.push(note.into());
        }
        if options.no_p4 && options.program.take().is_some() {
            let note = "the program has no effect: --no-p4 starts the switch without one";
            options.notes.push(note.into());
        }
        Ok(options)
    }

    fn check(&self) -> Result<(), String> {
        self.tls.check()?;
        for (i, interface) in self.interface.iter().enumerate() {
            let Interface { port, name } = interface;
            if let Some(twice) = self.interface[..i].iter().find(|o| o.port == *port) {
                return Err(format!(
                    "--interface: port {port} is used twice, for '{}' and '{name}'",
                    twice.name
                ));
            }
            self.check_special(*port, &format!("--interface {port}@{name}"))?;
        }
        for (i, port) in self.loopback.iter().enumerate() {
            if self.loopback[..i].contains(port) || self.interface.iter().any(|o| o.port == *port) {
                return Err(format!("--loopback {port}: port {port} already exists"));
            }
            self.check_special(*port, &format!("--loopback {port}"))?;
        }
        for (i, PortLink { port, .. }) in self.link.iter().enumerate() {
            let attached = self.interface.iter().any(|o| o.port == *port);
            if !attached && !self.loopback.contains(port) {
                return Err(format!(
                    "--link {port}: unknown port {port}: add it with --interface or --loopback"
                ));
            }
            if self.link[..i].iter().any(|other| other.port == *port) {
                return Err(format!("--link {port}: duplicate option"));
            }
        }
        if self.cpu_port == Some(self.drop_port) {
            return Err(format!(
                "--cpu-port {0}: port {0} is the drop port: choose another --cpu-port or --drop-port",
                self.drop_port
            ));
        }
        Ok(())
    }

    /// Checks that a port's number is not the CPU port or the drop port.
    fn check_special(&self, port: u32, option: &str) -> Result<(), String> {
        if Some(port) == self.cpu_port {
            return Err(format!(
                "{option}: port {port} is the CPU port (--cpu-port)"
            ));
        }
        if port == self.drop_port {
            return Err(format!(
                "{option}: port {port} is the drop port: choose another port or --drop-port"
            ));
        }
        Ok(())
    }

    /// Returns the number of packet threads: at most one per port.
    pub fn threads(&self) -> NonZeroUsize {
        let processors = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let ports = NonZeroUsize::new(self.interface.len()).unwrap_or(NonZeroUsize::MIN);
        let threads = self
            .threads
            .unwrap_or_else(|| default_threads(processors()));
        threads.min(ports)
    }
}

/// Returns the number of packet threads without `--threads`. The other half of the processors remains for the controller's
/// threads, the kernel's part of receiving, and programs on the same machine: hosts of emulations, for example. On two
/// processors, packets of a single thread cost less than those of two, which need the locks of registers.
fn default_threads(processors: NonZeroUsize) -> NonZeroUsize {
    NonZeroUsize::new(processors.get() / 2).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use softswitch_pipeline::Options as PipelineOptions;

    use super::*;

    fn parse(args: &str) -> Result<Options, String> {
        let args = std::iter::once("softswitch").chain(args.split_whitespace());
        Options::from_args(args.map(OsString::from)).map_err(|e| e.to_string())
    }

    #[test]
    fn accepts_command_lines_of_simple_switch_grpc() {
        let options = parse(
            "prog.json -i 1@veth1 --interface 2@veth2 --device-id 7 --thrift-port 9090 --log-console -L debug \
             -- --grpc-server-addr 127.0.0.1:0 --cpu-port 510 --drop-port 509",
        )
        .unwrap();
        assert_eq!(options.interface.len(), 2);
        assert_eq!((options.cpu_port, options.drop_port), (Some(510), 509));
        assert_eq!(options.grpc_server_addr, Address::Tcp("127.0.0.1:0".into()));
        assert_eq!(options.thrift_port, Some(9090));
        assert!(options.notes.is_empty());
        assert_eq!(options.pcap, None);
        let options = parse("prog.json --pcap dir -i 1@veth1 --trace json --trace-file t").unwrap();
        assert_eq!(options.pcap, Some("dir".into()));
        assert_eq!(options.trace, Some(TraceFormat::Json));
        let options = parse("prog.json --pcap -i 1@veth1").unwrap();
        assert_eq!(options.pcap, Some(".".into()));
        assert_eq!(options.engine, ProgramEngine::Native);
        let options = parse("prog.json --engine interpreter").unwrap();
        assert_eq!(Engine::from(options.engine), Engine::Interpreter);
        let options = parse("--no-p4 --max-resubmits 3 --max-iterations 5 --max-parser-states 7");
        let limits = options.unwrap().limits.apply(PipelineOptions::default());
        assert_eq!(
            (
                limits.max_resubmits,
                limits.max_iterations,
                limits.max_parser_states
            ),
            (3, 5, 7)
        );
        assert!(parse("--no-p4 -- --cpu-port 510").is_ok());
        let pipes = |line| parse(line).map(|options| options.pipes);
        assert_eq!(pipes("--no-p4"), Ok(1));
        assert_eq!(pipes("--no-p4 -- --pipes 4"), Ok(4));
        assert!(pipes("--no-p4 -- --pipes 3").is_err(), "no chip has 3");
        assert!(parse("--no-p4 -i 1@a --loopback 2 --link 2:delay=3ms").is_ok());
        assert!(parse("--no-p4 --cpu-port 510").is_ok());
    }

    #[test]
    fn accepts_every_option_of_simple_switch() {
        let lists = include_str!("../../../conformance/options.json");
        let lists: serde_json::Value = serde_json::from_str(lists).unwrap();
        let mut count = 0;
        for program in ["simple_switch", "simple_switch_grpc"] {
            for option in lists[program].as_array().unwrap() {
                for name in option["names"].as_array().unwrap() {
                    let name = name.as_str().unwrap();
                    if ["-h", "--help", "-v", "--version"].contains(&name) {
                        assert!(parse(name).is_err(), "{name} prints and ends");
                        continue;
                    }
                    let value = match name {
                        "-i" | "--interface" => "1@veth1",
                        "-L" | "--log-level" => "debug",
                        "--grpc-server-addr" | "--dp-grpc-server-addr" => "0.0.0.0:50052",
                        "--grpc-server-ssl" => "--grpc-server-cert a --grpc-server-key b",
                        "--notifications-addr" => "ipc:///tmp/x.ipc",
                        _ if option["value"] == "none" => "",
                        _ => "5",
                    };
                    let line = format!("{name} {value} prog.json");
                    parse(&line).unwrap_or_else(|e| panic!("{program} {line}: {e}"));
                    if option["value"] == "optional" {
                        let line = format!("{name}=5 prog.json");
                        parse(&line).unwrap_or_else(|e| panic!("{program} {line}: {e}"));
                    }
                    count += 1;
                }
            }
        }
        assert!(count > 60, "only {count} options were tried");
    }

    #[test]
    fn accepts_the_command_lines_of_the_tutorials() {
        let options = parse(
            "-i 1@s1-eth1 -i 2@s1-eth2 --pcap pcaps --nanolog ipc:///tmp/bm-0-log.ipc --device-id 0 build/basic.json \
             --debugger --log-console --thrift-port 9090 -- --grpc-server-addr 0.0.0.0:50051 --cpu-port 255 \
             --priority-queues 8",
        );
        let options = options.unwrap();
        assert_eq!(options.program, Some("build/basic.json".into()));
        assert_eq!(options.cpu_port, Some(255));
        assert_eq!(options.thrift_port, Some(9090));
        let notes: Vec<&str> = (options.notes.iter())
            .map(|note| note.split(' ').next().unwrap())
            .collect();
        assert_eq!(notes, ["--nanolog", "--debugger", "--priority-queues"]);
        let packets = parse("--no-p4 -i 1@a -- --dp-grpc-server-addr 0.0.0.0:1").unwrap();
        assert_eq!((packets.interface.len(), packets.notes.len()), (0, 1));
        // A program with --no-p4 is ignored, as in BMv2, and options may be abbreviated.
        let options = parse("--no-p4 prog.json --log-c --dump 5").unwrap();
        assert_eq!((options.program, options.notes.len()), (None, 1));
        assert!(options.log.log_console && options.log.dump_packet_data == 5);
    }

    #[test]
    fn simple_switch_takes_a_free_port_by_default() {
        let address = |line: &str| {
            let options = Options::from_args(line.split(' ').map(OsString::from));
            options.unwrap().grpc_server_addr.to_string()
        };
        assert_eq!(address("/usr/bin/simple_switch p.json"), "127.0.0.1:0");
        let given = "simple_switch p.json --grpc-server-addr 0.0.0.0:9559";
        assert_eq!(address(given), "0.0.0.0:9559");
        assert_eq!(address("simple_switch_grpc p.json"), "0.0.0.0:9559");
    }

    #[test]
    fn thrift_port_is_9090_by_default_under_names_of_bmv2() {
        let ports = |line: &str| {
            let options = Options::from_args(line.split(' ').map(OsString::from)).unwrap();
            (options.thrift_port, options.default_thrift_port)
        };
        for program in ["bin/simple_switch", "simple_switch_grpc"] {
            assert_eq!(ports(&format!("{program} p.json")), (None, Some(9090)));
            let given = format!("{program} p.json --thrift-port 9095");
            assert_eq!(ports(&given), (Some(9095), None));
        }
        assert_eq!(ports("softswitch p.json"), (None, None));
    }

    #[test]
    fn tls_options_without_tls_have_no_effect() {
        let options = parse("--no-p4 --grpc-server-cert a --grpc-server-cacert b").unwrap();
        assert_eq!(
            options.notes,
            [
                "--grpc-server-cacert has no effect without --grpc-server-ssl",
                "--grpc-server-cert has no effect without --grpc-server-ssl"
            ]
        );
    }

    #[test]
    fn threads_are_at_most_one_per_port() {
        let threads = |args: &str| parse(args).unwrap().threads().get();
        assert_eq!(threads("--no-p4"), 1);
        assert_eq!(threads("--no-p4 -i 1@a -i 2@b --threads 8"), 2);
        assert_eq!(threads("--no-p4 -i 1@a -i 2@b --threads 1"), 1);
        assert!((1..=2).contains(&threads("--no-p4 -i 1@a -i 2@b")));
    }

    #[test]
    fn threads_are_half_of_the_processors_by_default() {
        let default = |processors| default_threads(NonZeroUsize::new(processors).unwrap()).get();
        assert_eq!([1, 2, 3, 4, 16].map(default), [1, 1, 1, 2, 8]);
    }

    #[test]
    fn errors_name_the_option() {
        for (args, expected) in [
            ("", "PROGRAM.json"),
            ("--no-p4 -i veth1", "expected PORT@INTERFACE"),
            (
                "--no-p4 -i 1@a -i 1@b",
                "port 1 is used twice, for 'a' and 'b'",
            ),
            ("--no-p4 -i 1@a -- --cpu-port 1", "is the CPU port"),
            ("--no-p4 -i 511@a", "is the drop port"),
            ("--no-p4 -i 1@a --loopback 1", "port 1 already exists"),
            ("--no-p4 --loopback 2 --loopback 2", "port 2 already exists"),
            ("--no-p4 --loopback 511", "is the drop port"),
            ("--no-p4 --loopback 2 -- --cpu-port 2", "is the CPU port"),
            ("--no-p4 --link 1:rate=1mbit", "unknown port 1"),
            (
                "--no-p4 -i 1@a --link 1:rate=1",
                "invalid quantity '1': use one of the units",
            ),
            (
                "--no-p4 -- --grpc-server-addr nowhere",
                "expected HOST:PORT",
            ),
            ("--no-p4 -- --cpu-port 511", "is the drop port"),
            ("--no-p4 -- --cpu-port 0", "--cpu-port"),
            ("--no-p4 --trace-file t", "--trace <FORMAT>"),
            ("--no-p4 --trace xml", "[possible values: text, json]"),
            ("--no-p4 --threads 0", "--threads"),
            ("--no-p4 --log-console --log-file f", "--log-file"),
            ("--no-p4 --log-file-max-size 0", "--log-file-max-size"),
            ("--no-p4 --grpc-server-ssl", "--grpc-server-cert"),
            (
                "--no-p4 --grpc-server-ssl --grpc-server-cert a --grpc-server-key b --grpc-server-with-client-auth",
                "add --grpc-server-cacert",
            ),
            (
                "--no-p4 --loopback 1 --dp-grpc-server-addr 0.0.0.0:1",
                "--loopback",
            ),
        ] {
            let error = parse(args).unwrap_err();
            assert!(error.contains(expected), "{args}: {error}");
        }
    }
}
