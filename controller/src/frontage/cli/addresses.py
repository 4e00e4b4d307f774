# SPDX-License-Identifier: Apache-2.0
"""``frontage names``: the service addresses of names, and the DNS records for clients that do not hash names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from ipaddress import ip_address
from typing import Annotated

import typer
from rich.table import Table

from frontage.cli.common import DEFAULT_CONFIG, ConfigOption, JsonOption, example, fail, load_config, out
from frontage.naming import canonical_name
from frontage.service_addresses import Assignment, Document, assign, published


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=example("frontage names films.example -c frontage.yaml"))(names)


def names(
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Further names, besides the configured ones.")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    zone: Annotated[bool, typer.Option("--zone", help="Print the records of a DNS zone instead of a table.")] = False,
    ttl: Annotated[int, typer.Option(min=0, max=86400, help="The time to live in the zone, in seconds.")] = 30,
    as_json: JsonOption = False,
) -> None:
    """Show the service addresses of the configuration's names and of NAME, and report names with the same address."""
    found = load_config(config, as_json=as_json)
    if not found.instances:
        fail(f"{config}: missing section `instances`: add it with `prefix` and `names`", as_json=as_json)
    try:
        assignments = assign(found, [canonical_name(name) for name in more or ()])
    except ValueError as error:
        fail(error, as_json=as_json)
    if as_json:
        out.print_json(json.dumps([asdict(assignment) for assignment in assignments]))
    elif zone:
        for name, document in published(assignments).items():
            for line in _zone_lines(name, document, ttl):
                out.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        _show(assignments)


def _zone_lines(name: str, document: Document, ttl: int) -> Iterator[str]:
    """Yield the resource records of a document in the format of zone files."""
    addresses = [ip_address(address) for address in document.get("address", ())]
    for address in addresses:
        yield f"{name}. {ttl} IN {'A' if address.version == 4 else 'AAAA'} {address}"
    if (https := document.get("https")) is not None:
        parameters = [f"alpn={','.join(https['alpn'])}", *([f"port={https['port']}"] if "port" in https else [])]
        for version in (4, 6):
            if hints := ",".join(str(address) for address in addresses if address.version == version):
                parameters.append(f"ipv{version}hint={hints}")
        target = f"{https['target']}." if "target" in https else "."
        yield f"{name}. {ttl} IN HTTPS 1 {target} {' '.join(parameters)}"


def _show(assignments: list[Assignment]) -> None:
    table = Table("name", "service address", "ports of VIPs", "same address as", box=None)
    table.columns[1].no_wrap = True
    for a in assignments:
        table.add_row(a.name, a.address, " ".join(map(str, a.ports)) or "-", " ".join(a.collisions) or "-")
    out.print(table)
