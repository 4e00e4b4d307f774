# SPDX-License-Identifier: Apache-2.0
"""Tests that the commands in the documentation exist, with their targets, variables, subcommands and options."""

import importlib.util
import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from pages import PAGES, REPOSITORY, code, sources

from frontage.cli import app as controller
from frontage_sim.__main__ import app as simulations

MAKEFILE = (REPOSITORY / "Makefile").read_text()
WORD = re.compile(r"[a-z][a-z0-9/-]*")
APPS = {"frontage": typer.main.get_command(controller), "frontage-sim": typer.main.get_command(simulations)}
MANIFESTS = {file: tomllib.loads(file.read_text()) for file in sources("Cargo.toml")}
PROJECTS = [tomllib.loads(file.read_text()).get("project", {}) for file in sources("pyproject.toml")]
PACKAGES = {manifest["package"]["name"] for manifest in MANIFESTS.values() if "package" in manifest}


def programs() -> set[str]:
    """Return the names of the programs of this project."""
    found = {name for project in PROJECTS for name in (project.get("name", ""), *project.get("scripts", {}))} | PACKAGES
    found |= set(re.findall(r"^\w+ := \S+/(frontage-[a-z0-9-]+)$", MAKEFILE, re.MULTILINE))  # in C
    for file, manifest in MANIFESTS.items():
        found |= {target["name"] for kind in ("bin", "example") for target in manifest.get(kind, [])}
        for kind in ("src/bin", "examples"):
            found |= {source.stem for source in (file.parent / kind).glob("*")}
    return found


def targets() -> set[str]:
    """Return the targets of the Makefile."""
    text = MAKEFILE
    for name, value in reversed(re.findall(r"^(\w+) := (.+)$", text, re.MULTILINE)):
        text = text.replace(f"$({name})", value)
    return set(re.findall(r"^([a-z][\w./-]*):", text, re.MULTILINE))


PROGRAMS, TARGETS = programs(), targets()


def words(command: str) -> list[str]:
    """Return the words of the first command of a shell line, or an empty list if it is not a shell line."""
    try:
        return shlex.split(command.partition("&&")[0], comments=True)
    except ValueError:
        return []


def make(arguments: list[str]) -> list[str]:
    """Return the arguments of `make` that the Makefile does not define."""
    unknown = []
    for word in arguments:
        variable = re.match(r"([A-Z0-9_]+)=", word)
        if variable and not re.search(rf"\b{variable[1]}\b", MAKEFILE):
            unknown.append(variable[1])
        elif not variable and (not WORD.fullmatch(word) or word not in TARGETS):
            unknown.append(word)
    return unknown


def typed(program: str, arguments: list[str]) -> list[str]:
    """Return the arguments that a command line built with typer does not define."""
    command, unknown = APPS[program], []
    for word in arguments:
        if word == "|":  # alternatives
            break
        if known := getattr(command, "commands", None):
            if word in known:
                command = known[word]
            elif WORD.fullmatch(word):
                unknown.append(word)
        if option := re.match(r"\[?(--?[a-z][a-z-]*)", word):
            named = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
            if option[1] not in named | {"--help"}:
                unknown.append(option[1])
    return unknown


def cargo(arguments: list[str]) -> list[str]:
    """Return the packages, programs and examples that do not exist."""
    pairs = pairwise(arguments)
    return [name for option, name in pairs if option in ("-p", "--bin", "--example") and name not in PROGRAMS]


def unknown(command: str) -> list[str]:
    """Return the parts of a command that do not exist."""
    match words(command):
        case ["make", "-C", folder, *_]:
            return [] if (REPOSITORY / folder / "Makefile").exists() else [folder]
        case ["make", *arguments]:
            return make(arguments)
        case ["cargo", *arguments]:
            return cargo(arguments)
        case ["python" | "python3", "-m", module, *_]:
            return [] if importlib.util.find_spec(module) else [module]
        case ["pytest" | "build/venv/bin/pytest", *arguments]:
            return [word for word in arguments if "/" in word and not (REPOSITORY / word.partition("::")[0]).exists()]
        case [program, *arguments] if program in APPS:
            return typed(program, arguments)
        case [program, *_] if re.fullmatch(r"frontage-[a-z0-9-]+", program) and program not in PROGRAMS:
            return [program]
    return []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_commands_exist(page: Path) -> None:
    wrong = {command: found for command in code(page.read_text()) if (found := unknown(command))}
    assert not wrong


@pytest.mark.parametrize("command", ["make nothing", "make demo NOTHING=1", "frontage nothing", "frontage up --nothing",
                                     "frontage-nothing x", "cargo run -p nothing", "python -m frontage.nothing",
                                     "pytest tools/nothing"])  # fmt: skip
def test_unknown_command_is_detected(command: str) -> None:
    assert unknown(command)


def test_hints_in_programs_name_targets() -> None:
    hints = {
        (str(file.relative_to(REPOSITORY)), target)
        for file in sources(".py", ".rs")
        for target in re.findall(r"`make ([a-z][a-z0-9/-]*)", file.read_text())
    }
    assert hints and not {hint for hint in hints if hint[1] not in TARGETS}
