# SPDX-License-Identifier: Apache-2.0
"""``frontage mapping``: shows and fills the store of the end-user mapping.

The commands import the store's libraries when they run, so that other commands start without them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from frontage.cli.common import DEFAULT_CONFIG, ConfigOption, JsonOption, example, fail, load_config, out, service_name
from frontage.config import Config
from frontage.mapping.store.kind import Kind

if TYPE_CHECKING:
    from frontage.mapping.store.lookup import Explanation
    from frontage.mapping.store.store import Store

app = typer.Typer(no_args_is_help=True, help="The end-user mapping: which sites are best for a client of a service.")


@app.command(epilog=example("frontage mapping show -c frontage.yaml"))
def show(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Show the sizes of the mapping's tables, and the sites of services."""
    from frontage.mapping.store.tables import Tables, read

    with _opened(config, as_json=as_json) as (_, store):
        tables = read(store, Tables())
        replicas = store.replicas()
        deployed = store.deployments()
    entries = sum(len(choices.by_region) - 1 for choices in tables.deployments.values())
    sizes = {
        "version": tables.content,
        "client_prefixes": len(tables.clients),
        "regions": len(set(tables.clients.values())),
        "deployments": len(tables.deployments),
        "services": len(tables.services),
        "region_slots": entries,
    }
    services = [
        {
            "name": name,
            "id": details.number,
            "deployment": tables.services.get(name, 0),
            "redundancy": details.redundancy,
            "policy": details.policy,
            "sites": sorted(deployed.get(name, ())),
            "replicas": sum(replica.service == name for replica in replicas),
            "accepting": sum(replica.service == name and replica.accepting for replica in replicas),
        }
        for name, details in tables.details.items()
    ]
    if as_json:
        out.print_json(json.dumps({"ok": True, **sizes, "table": services}))
        return
    out.print(", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in sizes.items()), highlight=False)
    table = Table("service", "id", "deployment", "sites", "copies", "policy", "replicas accepting", box=None)
    for row in services:
        sites = " ".join(map(str, row["sites"])) if isinstance(row["sites"], list) else ""
        share = f"{row['accepting']} of {row['replicas']}"
        about = (row["name"], row["id"], row["deployment"] or "-", sites or "-", row["redundancy"], row["policy"], share)
        table.add_row(*map(str, about))
    out.print(table)


@app.command(epilog=example("frontage mapping explain 2001:db8:c1::/48 films.example"))
def explain(
    prefix: Annotated[str, typer.Argument(help="The address of a client, or a prefix of clients.")],
    service: Annotated[str, typer.Argument(help="The name of a service.", callback=service_name)],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Explain to which sites a client of a service is sent, and by which RTTs."""
    from frontage.mapping.compute.prefixes import parse
    from frontage.mapping.store.lookup import look_up

    try:
        client = parse(prefix)
    except ValueError as error:
        fail(f"{error}: give an address, or a prefix without host bits, for example 2001:db8:c1::/48", as_json=as_json)
    with _opened(config, as_json=as_json) as (loaded, store):
        assert loaded.site is not None, "config.checks rejects end_users without site"
        try:
            answer = look_up(store, client, service, loaded.site.id)
        except KeyError:
            known = ", ".join(sorted(store.services())[:20]) or "none yet"
            fail(f"unknown service {service!r}: use one of: {known}", as_json=as_json)
    if as_json:
        out.print_json(json.dumps(answer.plain()))
    else:
        _print(answer, client_text=str(client), service=service)


def _print(answer: Explanation, *, client_text: str, service: str) -> None:
    sites = ", then ".join(f"site {site}" for site in answer.sites) or "the site that they enter"
    why = (
        f"region {answer.region} by {answer.matched}" if answer.matched else f"in no region: the default of site {answer.own_site}"
    )
    if answer.deployment:
        why += f"; deployment {answer.deployment}"
    out.print(f"clients in {client_text} of {service} go to {sites} ({why})", highlight=False)
    table = Table("site", "service there", "RTT", "measured under", "source", "samples", "last", box=None)
    for row in answer.rtts:
        last = datetime.fromtimestamp(row.measured_at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        there = "yes" if row.site in answer.deployed else "no"
        table.add_row(str(row.site), there, f"{row.rtt_us / 1000:.1f} ms", str(row.prefix), row.source, str(row.count), last)
    out.print(table)


@app.command("import", epilog=example("frontage mapping import latencies.csv -c frontage.yaml"))
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="CSV", help="A file of measurements, deployments or services; its header tells which.")
    ],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Add the rows of a CSV file to the store.

    The header is one of prefix,site,rtt_us,source; name,site; name,redundancy,policy,alpn. A running controller uses the rows
    from its next interval on.
    """
    from frontage.mapping.store import csvfile

    with _opened(config, as_json=as_json) as (_, store):
        try:
            kind, rows = csvfile.load(store, file, time.time())
        except csvfile.CsvError as error:
            fail(error, as_json=as_json)
    if as_json:
        out.print_json(json.dumps({"ok": True, "kind": kind, "rows": rows}))
    else:
        out.print(f"{file}: {rows:,} rows of {kind} added", highlight=False)


@app.command(epilog=example("frontage mapping export measurements > latencies.csv"))
def export(
    kind: Annotated[Kind, typer.Argument(help="The table to write.")],
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Write one table of the store as CSV, in the format that `import` reads."""
    from frontage.mapping.store import csvfile

    with _opened(config, as_json=False) as (_, store):
        csvfile.save(store, kind, sys.stdout)


@contextmanager
def _opened(file: Path, *, as_json: bool) -> Iterator[tuple[Config, Store]]:
    from frontage.mapping.errors import StoreError
    from frontage.mapping.store.store import Store

    config = load_config(file, as_json=as_json)
    if config.end_users is None:
        fail(f"{file}: the section end_users is missing: add it, with at least `store`", as_json=as_json)
    try:
        store = Store(config.end_users.store, window=config.end_users.window)
        try:
            yield config, store
        finally:
            store.close()
    except StoreError as error:
        fail(error, as_json=as_json)
