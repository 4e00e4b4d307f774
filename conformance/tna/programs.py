# SPDX-License-Identifier: Apache-2.0
"""The TNA programs of an open-p4studio checkout, and their PTF tests."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path

from corpus import CorpusError, read
from tools import run

PROGRAMS = Path("pkgsrc/p4-examples/p4_16_programs")
CLIENT = Path("pkgsrc/bf-drivers/src/bf_rt/bfruntime_grpc_client/python")
PROTO = Path("pkgsrc/bf-drivers/src/bf_rt/proto/bfruntime.proto")
PTF_UTILS = Path("pkgsrc/ptf-modules/ptf-utils")
ARCHITECTURE = re.compile(r"^\s*#\s*include\s*<(t2?na)\.p4>", re.MULTILINE)
MAIN = re.compile(r"^\s*\w+\s*\(.*\)\s*main\s*;", re.MULTILINE)


PORTS = tuple(range(17))
"""The ports of the switch for a suite that does not list its own."""
INTERNAL_PIPES = re.compile(r"--int-port-loop (0x[0-9a-f]+)")
"""In files of a suite: a mask of the pipes whose ports are connected to themselves."""
PORTS_PER_PIPE = 128


@dataclass(frozen=True)
class Chip:
    """A Tofino for which programs are compiled."""

    name: str
    """Name in the parameters of PTF tests and in file names."""
    title: str
    number: int
    """Value of the macro `__TARGET_TOFINO__`."""
    architectures: tuple[str, ...]
    """The architectures of its programs, the preferred one first."""
    ports: str
    """Name of the file with the ports of a suite."""


CHIPS = (
    Chip("tofino", "Tofino 1", 1, ("tna",), "ports.json"),
    Chip("tofino2", "Tofino 2", 2, ("t2na", "tna"), "ports_tof2.json"),
)


@dataclass(frozen=True)
class Program:
    name: str
    source: Path
    architectures: frozenset[str]
    """The architectures whose files it includes."""

    @property
    def chips(self) -> tuple[Chip, ...]:
        return tuple(chip for chip in CHIPS if self.architectures & set(chip.architectures))

    def architecture(self, chip: Chip) -> str:
        return next(name for name in chip.architectures if name in self.architectures)


@dataclass(frozen=True)
class Suite:
    """A folder with PTF tests."""

    name: str
    """The path below the folder of programs."""
    folder: Path
    program: Program | None
    """The program of the folder; None if the tests load programs themselves, or use those of folders below."""
    tests: tuple[str, ...]
    parts: tuple[Program, ...] = ()
    """The programs of folders below, which run in different pipes."""

    @property
    def chip(self) -> Chip:
        """The chip for which the tests run: the first of the program."""
        return self.program.chips[0] if self.program else CHIPS[0]

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports of the switch: those that the suite lists for its chip."""
        file = self.folder / self.chip.ports
        if not file.is_file():
            return PORTS
        ports = json.loads(read(file))["PortToVeth"]
        return tuple(port["device_port"] for port in ports if "device_port" in port)

    @property
    def internal_ports(self) -> tuple[int, ...]:
        """The ports that are connected to themselves, so that packets that leave through them come back."""
        files = [self.folder / name for name in ("custom_model_options", "README.md")]
        found = INTERNAL_PIPES.search("".join(read(file) for file in files if file.is_file()))
        pipes = int(found[1], 16) if found else 0
        return tuple(port for port in self.ports if pipes >> port // PORTS_PER_PIPE & 1)


@dataclass(frozen=True)
class Checkout:
    root: Path

    @classmethod
    def find(cls, root: str) -> Checkout:
        """Return the checkout of open-p4studio in this folder, or raise CorpusError."""
        if not root:
            raise CorpusError(
                "OPEN_P4STUDIO is not set: clone github.com/p4lang/open-p4studio (no build is needed), then run "
                "make tna-conformance OPEN_P4STUDIO=path/to/open-p4studio"
            )
        path = Path(root).resolve()
        for part in (PROGRAMS, CLIENT, PROTO, PTF_UTILS):
            if not (path / part).exists():
                raise CorpusError(
                    f"{root}: not a checkout of open-p4studio: missing {part}: use the folder that `git clone` created"
                )
        return cls(path)

    @property
    def folder(self) -> Path:
        return self.root / PROGRAMS

    def version(self) -> str:
        """Return the abbreviated commit of the checkout."""
        done = run("git", "-C", self.root, "log", "-1", "--format=%h", "--abbrev=10")
        return done.text.strip() if done.status == 0 else "of unknown version"

    def programs(self) -> list[Program]:
        """Return the programs that include tna.p4 or t2na.p4 and have a `main`, by name."""
        found = []
        for source in self.folder.rglob("*.p4"):
            text = read(source)
            architectures = frozenset(ARCHITECTURE.findall(text))
            if architectures and MAIN.search(text):
                found.append(Program(source.stem, source, architectures))
        return sorted(found, key=lambda program: program.name)

    def suites(self) -> list[Suite]:
        """Return the folders with PTF tests, by name, without those of programs for other architectures."""
        programs = {program.source: program for program in self.programs()}
        found = []
        for file in self.folder.rglob("test.py"):
            folder = file.parent
            source = folder / f"{folder.name}.p4"
            tests = test_names(read(file))
            if tests and (source in programs or not source.exists()):
                below = (program for program in programs.values() if folder in program.source.parents[1:])
                parts = () if source in programs else tuple(below)
                found.append(Suite(str(folder.relative_to(self.folder)), folder, programs.get(source), tests, parts))
        return sorted(found, key=lambda suite: suite.name)


def test_names(text: str) -> tuple[str, ...]:
    """Return the classes of a test module that PTF runs, in order: those with a method `runTest`, own or inherited."""
    names: list[str] = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
            if "runTest" in methods or bases & set(names):
                names.append(node.name)
    return tuple(names)
