# SPDX-License-Identifier: Apache-2.0
"""The controller's HTTP API and its console in the data centre's testbed."""

from __future__ import annotations

from pathlib import Path

import yaml
from rich.console import Console

from frontage.api.access import Role
from frontage.tokens import generate

from ..forward import Forward

HOST, PORT = "127.0.0.1", 9480
"""Where the controller listens, inside the sandbox."""


def serve_api(config: Path, role: Role = Role.ADMIN) -> str:
    """Add the section `api` to a configuration file, and return a token for it. Call this before the controller starts."""
    token, entry = generate("demo", role)
    tokens = config.with_name("api-tokens.toml")
    tokens.write_text(f"{entry}\n")
    document = yaml.safe_load(config.read_text())
    document["api"] = {"listen": f"{HOST}:{PORT}", "tokens": str(tokens)}
    config.write_text(yaml.safe_dump(document, sort_keys=False))
    return token


def add_token(config: Path, name: str, role: Role) -> str:
    """Add a token of another role, and return it. The controller reads it at once."""
    token, entry = generate(name, role)
    with config.with_name("api-tokens.toml").open("a") as tokens:
        tokens.write(f"{entry}\n")
    return token


def show_console(forward: Forward, token: str, console: Console) -> None:
    """Let the machine reach the console, and print the address that logs in. Call this in the sandbox."""
    forward.start(HOST, PORT)
    console.print(f"Console: {log_in_link(forward.address, token)}", highlight=False, markup=False, soft_wrap=True)


def log_in_link(address: str, token: str) -> str:
    """Return the console's address with the token in its fragment, which browsers do not send to servers."""
    return f"http://{address}/console/#token={token}"
