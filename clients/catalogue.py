"""The clients: how each is found, asked for its version, and told to download. catalogue.toml has them."""

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
    """A client of the catalogue cannot be used as it is written there."""


@dataclass(frozen=True)
class Client:
    """An entry of the catalogue, by the names that it has there."""

    name: str
    program: str
    install: str
    """How to get it."""
    version: list[str]
    get: list[str]
    migrate: list[str] = field(default_factory=list)
    variable: str | None = None

    def found(self, env: Mapping[str, str] = os.environ) -> Path | None:
        """Its program, if it is here.

        Raises CatalogueError if the environment names one that is not.
        """
        given = env.get(self.variable, "") if self.variable else ""
        program = given or self.program
        found = shutil.which(ROOT / program if "/" in program else program)
        if given and not found:
            raise CatalogueError(f"{self.variable}={given} is no program; correct or unset it")
        return Path(found) if found else None

    def version_of(self, program: Path) -> str:
        """The first number with a dot in what it says when asked for its version."""
        command = self._filled(self.version, {"program": str(program)})
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        found = re.search(r"\d+\.\S+", done.stdout)
        if done.returncode != 0 or not found:
            raise CatalogueError(f"{self.name}: {' '.join(command)} says no version; {self.install}")
        return found[0]

    def command(self, program: Path, values: Mapping[str, str], migrating: bool = False) -> list[str]:
        """To download; `values` are for the names in braces."""
        options = self.migrate if migrating else []
        words = [part for word in self.get for part in (options if word == "{migrate}" else [word])]
        return self._filled(words, {"program": str(program), **values})

    def _filled(self, words: list[str], values: Mapping[str, str]) -> list[str]:
        known = {name: str(place) for name, place in PLACES.items()} | dict(values)
        try:
            return [word.format_map(known) for word in words]
        except KeyError as error:
            raise CatalogueError(f"{CATALOGUE}: {self.name}: {{{error.args[0]}}} is not among {', '.join(known)}") from None


def read(path: Path = CATALOGUE) -> list[Client]:
    """All clients, in their order.

    Raises CatalogueError if an entry has a key too many or too few.
    """
    clients = []
    for entry in tomllib.loads(path.read_text())["client"]:
        try:
            clients.append(Client(**entry))
        except TypeError as error:
            raise CatalogueError(f"{path}: {entry.get('name', 'a client without a name')}: {error}") from None
    return clients
