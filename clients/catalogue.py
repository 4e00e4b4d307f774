# SPDX-License-Identifier: Apache-2.0
"""Reads catalogue.toml: how to find each client, query its version, and have it download."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "build" / "clients"
PLACES = {"python": Path(sys.executable), "here": HERE, "tests": ROOT / "host-agents" / "cclb7-quic" / "tests" / "clients"}
CATALOGUE = HERE / "catalogue.toml"


class CatalogueError(Exception):
    """An entry of the catalogue cannot be used."""


@dataclass(frozen=True)
class Client:
    """An entry of the catalogue, with its keys."""

    name: str
    program: str
    install: str
    """How to install the client."""
    version: list[str]
    get: list[str]
    migrate: list[str] = field(default_factory=list)
    variable: str | None = None

    def installed_program(self, env: Mapping[str, str] = os.environ) -> Path | None:
        """Return the client's program, or None if it is not installed.

        Raises CatalogueError if the environment names a missing program.
        """
        given = env.get(self.variable, "") if self.variable else ""
        program = given or self.program
        path = shutil.which(ROOT / program if "/" in program else program)
        if given and not path:
            raise CatalogueError(f"{self.variable}={given}: program not found: correct or unset the variable")
        return Path(path) if path else None

    def version_of(self, program: Path) -> str:
        """Return the first number with a dot in the output of the version command."""
        command = self._filled(self.version, {"program": str(program)})
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        number = re.search(r"\d+\.\S+", done.stdout)
        if done.returncode != 0 or not number:
            raise CatalogueError(f"{self.name}: no version in the output of {' '.join(command)}: {self.install}")
        return number[0]

    def command(self, program: Path, values: Mapping[str, str], migrating: bool = False) -> list[str]:
        """Return the command for a download; `values` replace the names in braces."""
        options = self.migrate if migrating else []
        words = [part for word in self.get for part in (options if word == "{migrate}" else [word])]
        return self._filled(words, {"program": str(program), **values})

    def _filled(self, words: list[str], values: Mapping[str, str]) -> list[str]:
        known = {name: str(place) for name, place in PLACES.items()} | dict(values)
        try:
            return [word.format_map(known) for word in words]
        except KeyError as error:
            raise CatalogueError(f"{CATALOGUE}: {self.name}: unknown name {{{error.args[0]}}}: use {', '.join(known)}") from None


def read(path: Path = CATALOGUE) -> list[Client]:
    """Return all clients in order. Raises CatalogueError if an entry has an unknown or missing key."""
    clients = []
    for entry in tomllib.loads(path.read_text())["client"]:
        try:
            clients.append(Client(**entry))
        except TypeError as error:
            raise CatalogueError(f"{path}: {entry.get('name', 'a client without a name')}: {error}") from None
    return clients
