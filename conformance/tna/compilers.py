# SPDX-License-Identifier: Apache-2.0
"""Compiles the programs, with softswitch-p4c and with the open compiler for Tofino, and compares P4Info and schemas."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checks import p4info_difference
from corpus import read
from outcomes import Outcome
from tna.programs import Checkout, Chip, Program
from tools import Done, ToolError, run


@dataclass(frozen=True)
class Compilation:
    """A program compiled for a chip, in a folder with the layout that the tests read programs from."""

    program: Program
    chip: Chip
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.program.name}/{self.chip.name}"

    @property
    def json(self) -> Path:
        # The switch names the program after this file.
        return self.folder / f"{self.program.name}.json"

    @property
    def schema(self) -> Path:
        return self.folder / "bf-rt.json"

    @property
    def p4info(self) -> Path:
        return self.folder / "p4info.txtpb"

    def options(self, checkout: Checkout) -> list[str | Path]:
        """Return the options that both compilers share."""
        source = self.program.source
        outputs: list[str | Path] = ["--p4runtime-files", self.p4info, "--bf-rt-schema", self.schema]
        return ["-I", source.parent, "-I", checkout.folder, f"-D__TARGET_TOFINO__={self.chip.number}", *outputs, source]


def compile_own(compiler: Path, checkout: Checkout, work: Compilation) -> Outcome:
    """Compile with softswitch-p4c, and lay out the files as the tests expect them from Tofino's compiler."""
    done = _compile(work, compiler, "-o", work.json, *work.options(checkout))
    if done.status == 0:
        for pipeline in pipelines(work.schema):
            (work.folder / pipeline).mkdir()
            shutil.copy(work.json, work.folder / pipeline / f"{work.chip.name}.bin")
            (work.folder / pipeline / "context.json").write_text("{}\n")
    return Outcome(work.name, done.status == 0, done.first)


def pipelines(schema: Path) -> set[str]:
    """Return the names of a program's pipelines, which precede the names of its tables."""
    return {table["name"].split(".")[0] for table in json.loads(read(schema))["tables"]}


def compile_peer(command: list[str], checkout: Checkout, work: Compilation) -> Done:
    """Compile with the open compiler for Tofino; its files may exist even if it fails."""
    # The messages of P4Runtime for counters and the like, as Stratum needs them, instead of Tofino's own.
    target = ["--target", work.chip.name, "--arch", work.program.architecture(work.chip), "--p4runtime-force-std-externs"]
    return _compile(work, *command, *target, "-o", work.folder / "out", *work.options(checkout))


def _compile(work: Compilation, *command: str | Path) -> Done:
    shutil.rmtree(work.folder, ignore_errors=True)
    work.folder.mkdir(parents=True)
    done = run(*command, folder=work.program.source.parent)
    (work.folder / "compile.log").write_text(done.text)
    return done


def tofino_compiler() -> list[str] | None:
    """Return the command in P4C_TOFINO; None if it is not set."""
    command = shlex.split(os.environ.get("P4C_TOFINO", ""))
    if command and (found := shutil.which(command[0])) is None:
        raise ToolError(f"P4C_TOFINO={command[0]}: not a program: correct or unset it")
    return [str(Path(found).resolve()), *command[1:]] if command and found else None


def compare_p4info(ours: Compilation, theirs: Compilation) -> Outcome:
    missing = _missing(ours.p4info, theirs.p4info)
    difference = missing or p4info_difference(without_externs(read(theirs.p4info)), read(ours.p4info))
    return Outcome(ours.name, difference is None, difference or "")


def without_externs(p4info: str) -> str:
    """Return P4Info without externs. The open compiler adds the metadata of ports, in a type that P4Runtime does not have."""
    return re.sub(r"^externs \{\n(?:  .*\n)*\}\n", "", p4info, flags=re.MULTILINE)


def compare_schemas(ours: Compilation, theirs: Compilation) -> Outcome:
    missing = _missing(ours.schema, theirs.schema)
    difference = missing or json_difference(without_snapshots(json.loads(read(theirs.schema))), json.loads(read(ours.schema)))
    return Outcome(ours.name, difference is None, difference or "")


def without_snapshots(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the tables of snapshots and debug counters, which softswitch does not have."""
    tables = [table for table in schema["tables"] if not table["table_type"].startswith(("Snapshot", "TblDbgCnt"))]
    return {**schema, "tables": tables}


def _missing(ours: Path, theirs: Path) -> str | None:
    for compiler, file in (("softswitch-p4c", ours), ("P4C_TOFINO", theirs)):
        if not file.is_file():
            return f"{compiler} does not write {file.name}: see {file.parent / 'compile.log'}"
    return None


def json_difference(theirs: object, ours: object, path: str = "") -> str | None:
    """Return the first difference of two JSON values with its path.

    The order of an object's members does not matter. Objects in a list are matched by their names, if all have one.
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            if key not in ours or key not in theirs:
                return f"{path}/{key}: only {'P4C_TOFINO' if key in theirs else 'softswitch-p4c'} has it"
            if found := json_difference(theirs[key], ours[key], f"{path}/{key}"):
                return found
        return None
    if isinstance(theirs, list) and isinstance(ours, list):
        if all(_is_named(item) for item in theirs + ours):
            return json_difference({item["name"]: item for item in theirs}, {item["name"]: item for item in ours}, path)
        if len(theirs) == len(ours):
            pairs = enumerate(zip(theirs, ours, strict=True))
            return next((found for i, (a, b) in pairs if (found := json_difference(a, b, f"{path}/{i}"))), None)
    return None if theirs == ours else f"{path}: P4C_TOFINO: {json.dumps(theirs)[:80]}; here: {json.dumps(ours)[:80]}"


def _is_named(item: object) -> bool:
    return isinstance(item, dict) and "name" in item
