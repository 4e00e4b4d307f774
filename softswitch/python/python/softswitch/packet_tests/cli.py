# SPDX-License-Identifier: Apache-2.0
"""The command `softswitch-ptf`."""

import argparse
import ast
import sys
from pathlib import Path

from .errors import RunError
from .programs import Artifacts, Compiler, find_program
from .runner import run
from .suite import Suite
from .target import Target

SWITCHES = {"softswitch": "softswitch", "bmv2": "simple_switch_grpc"}
DESCRIPTION = "Compile a P4 program, start switches with it in network namespaces of their own, and run PTF tests there."
EPILOG = """\
Test parameters: grpcaddr, p4info, config, json, device_id, cpu_port, packet_wait_time, target, and those of --test-param.
The exit status is 0 if tests ran and none failed, 1 if a test failed or none ran, and 2 if the tests could not start.

Examples:
  softswitch-ptf --program router.p4 --tests ptf
  softswitch-ptf --program router.p4 --tests ptf --jobs 4 --junit results.xml test_routes LongestPrefixWins
  softswitch-ptf --program router.p4 --tests ptf --coverage coverage.info
  softswitch-ptf --program router.p4 --tests ptf --target bmv2 --compiler p4c-bm2-ss
"""


def port_list(text: str) -> tuple[int, ...]:
    """Parse "0-7" or "1,2,10-12". Ports are in ascending order."""
    ports: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        if not low.isdecimal() or (high and not high.isdecimal()) or int(high or low) < int(low):
            raise argparse.ArgumentTypeError(f"invalid ports {text!r}: use numbers and ranges, for example 0-7,64")
        ports |= set(range(int(low), int(high or low) + 1))
    if max(ports) > 511:
        raise argparse.ArgumentTypeError(f"port {max(ports)} is too large: use at most 511")
    return tuple(sorted(ports))


def positive(text: str) -> int:
    """Parse a number of at least 1."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"invalid number {text!r}: use 1 or more")
    return int(text)


def parameter(text: str) -> tuple[str, object]:
    """Parse NAME=VALUE. A value that is not a Python literal is a string."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"invalid parameter {text!r}: use NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(
        "softswitch-ptf", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = result.add_argument
    add("names", nargs="*", metavar="TEST", help="file, class, MODULE.CLASS or group; all tests without it")
    add("--program", type=Path, required=True, metavar="FILE", help="the P4 program, or BMv2 JSON if its name ends in .json")
    add("--p4info", type=Path, metavar="FILE", help="the P4Info of a program in BMv2 JSON")
    add("--tests", type=Path, required=True, metavar="DIR", help="the folder of the PTF tests")
    add("--target", choices=SWITCHES, default="softswitch", help="the kind of switch (default: %(default)s)")
    add("--switch", metavar="PROGRAM", help="the switch (default: softswitch or simple_switch_grpc)")
    add("--compiler", default="softswitch-p4c", metavar="PROGRAM", help="softswitch-p4c (default) or p4c-bm2-ss")
    add("-I", action="append", default=[], dest="includes", metavar="DIR", help="search included files in this folder")
    add("-D", action="append", default=[], dest="macros", metavar="NAME[=VALUE]", help="define a preprocessor macro")
    add("--ports", type=port_list, default="0-7", metavar="LIST", help="ports of the switch (default: %(default)s)")
    add("--cpu-port", type=int, default=510, metavar="N", help="port of packet-in and packet-out (default: %(default)s)")
    add("--load", action="store_true", help="start the switch with the program, for tests that do not set it by P4Runtime")
    add(
        "--switch-option",
        action="append",
        default=[],
        metavar="OPTION",
        help="option for the switch, after its `--`: --switch-option=...",
    )
    add("--jobs", type=positive, default=1, metavar="N", help="number of switches that share the tests (default: %(default)s)")
    add("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    add(
        "--coverage",
        type=Path,
        metavar="FILE",
        help="count which parts of the program packets reach, in this LCOV file and an HTML page beside it",
    )
    add("--output", type=Path, default=Path("ptf-output"), metavar="DIR", help="folder of logs and captures (default: %(default)s)")
    add(
        "--test-param",
        type=parameter,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a test parameter, or another value of one",
    )
    add("--pypath", action="append", default=[], metavar="DIR", help="search Python modules in this folder")
    add("--test-timeout", type=positive, metavar="SECONDS", help="time after which a test fails (default: none)")
    add("--seed", type=int, default=1, metavar="N", help="seed of Python's random numbers (default: %(default)s)")
    add("--allow-skips", action="store_true", help="succeed without root, and if no test ran")
    return result


def artifacts_of(options: argparse.Namespace) -> Artifacts:
    """Return the compiled program. Compile it if it is P4 source."""
    for file in filter(None, (options.program, options.p4info)):
        if not file.is_file():
            raise RunError(f"{file}: no such file: name an existing one")
    if options.program.suffix == ".json":
        if options.p4info is None:
            raise RunError(f"{options.program}: the P4Info is missing: add --p4info FILE")
        return Artifacts(options.program.resolve(), options.p4info.resolve())
    if options.p4info is not None:
        raise RunError(f"{options.p4info}: the compiler writes the P4Info of {options.program}: remove --p4info")
    words = [word for folder in options.includes for word in ("-I", folder)] + [f"-D{macro}" for macro in options.macros]
    return Compiler(options.compiler, tuple(words)).compile(options.program, options.output)


def suite_of(options: argparse.Namespace) -> Suite:
    """Return the suite that the command line describes."""
    if not options.tests.is_dir():
        raise RunError(f"{options.tests}: no such folder: name the folder of the tests")
    switch = find_program(options.switch or SWITCHES[options.target], "install it, or name another one with --switch")
    if options.coverage and options.target != "softswitch":
        raise RunError(f"--coverage: not available on {options.target}: remove it, or use --target softswitch")
    options.output.mkdir(parents=True, exist_ok=True)
    ptf_options = ["--random-seed", str(options.seed), *(word for folder in options.pypath for word in ("--pypath", folder))]
    if options.test_timeout is not None:
        ptf_options += ["--test-case-timeout", str(options.test_timeout)]
    return Suite(
        tests=options.tests,
        target=Target(options.target, switch, options.cpu_port, tuple(options.switch_option), options.coverage),
        artifacts=artifacts_of(options),
        output=options.output,
        names=tuple(options.names),
        ports=options.ports,
        load=options.load,
        jobs=options.jobs,
        parameters=dict(options.test_param),
        ptf_options=tuple(ptf_options),
        allow_skips=options.allow_skips,
        junit=options.junit,
    )


def main() -> int:
    """Run `softswitch-ptf`; return its exit status."""
    options = parser().parse_args()
    try:
        return run(suite_of(options))
    except RunError as error:
        print(f"softswitch-ptf: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
