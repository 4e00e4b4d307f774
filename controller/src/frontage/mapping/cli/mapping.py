"""``frontage mapping``: looks into the end-user mapping's store, and fills it.

The store's libraries are loaded by the commands that use it: no other command waits for them.
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

from frontage.cli.common import DEFAULT_CONFIG, ConfigOption, JsonOption, example, fail, load_config, out
from frontage.config import Config
from frontage.mapping.store.kind import Kind

if TYPE_CHECKING:
    from frontage.mapping.store.lookup import Answer
    from frontage.mapping.store.store import Store

app = typer.Typer(no_args_is_help=True, help="The end-user mapping: which sites are best for a client of a service.")


@app.command(epilog=example("frontage mapping show -c frontage.yaml"))
def show(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Show the sizes of the mapping's tables, and where services are."""
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
            "id": one.number,
            "deployment": tables.services.get(name, 0),
            "redundancy": one.redundancy,
            "policy": one.policy,
            "sites": sorted(deployed.get(name, ())),
            "replicas": sum(replica.service == name for replica in replicas),
            "accepting": sum(replica.service == name and replica.accepting for replica in replicas),
        }
        for name, one in tables.details.items()
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
    prefix: Annotated[str, typer.Argument(help="A client's address, or a prefix of clients.")],
    service: Annotated[str, typer.Argument(help="A service's name.")],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Say where a client of a service goes, and which RTTs that rests on."""
    from frontage.mapping.compute.prefixes import parse
    from frontage.mapping.store.lookup import look_up

    try:
        client = parse(prefix)
    except ValueError as error:
        fail(f"{error}; give an address, or a prefix without host bits, for example 2001:db8:c1::/48", as_json=as_json)
    with _opened(config, as_json=as_json) as (found, store):
        assert found.site is not None
        try:
            answer = look_up(store, client, service.lower().removesuffix("."), found.site.id)
        except KeyError:
            known = ", ".join(sorted(store.services())[:20]) or "none yet"
            fail(f"there is no service {service}; known are: {known}", as_json=as_json)
    if as_json:
        out.print_json(json.dumps(answer.plain()))
    else:
        _print(answer, client_text=str(client), service=service)


def _print(answer: Answer, *, client_text: str, service: str) -> None:
    sites = ", then ".join(f"site {site}" for site in answer.sites) or "the site that they reach"
    why = f"region {answer.region} by {answer.matched}" if answer.matched else f"in no region: site {answer.own_site}'s own view"
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
    file: Annotated[Path, typer.Argument(metavar="CSV", help="Measurements, deployments or services; the header says which.")],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Add a CSV file's rows to the store: prefix,site,rtt_us,source, or name,site, or name,redundancy,policy,alpn.

    The running controller takes them up within its interval.
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
    kind: Annotated[Kind, typer.Argument(help="What to write.")],
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Write one of the store's tables as CSV, as `import` reads it."""
    from frontage.mapping.store import csvfile

    with _opened(config, as_json=False) as (_, store):
        csvfile.save(store, kind, sys.stdout)


@contextmanager
def _opened(file: Path, *, as_json: bool) -> Iterator[tuple[Config, Store]]:
    from frontage.mapping.errors import StoreError
    from frontage.mapping.store.store import Store

    config = load_config(file, as_json=as_json)
    if config.end_users is None:
        fail(f"{file}: has no end_users; add the section, with at least `store`", as_json=as_json)
    try:
        store = Store(config.end_users.store, window=config.end_users.window)
        try:
            yield config, store
        finally:
            store.close()
    except StoreError as error:
        fail(error, as_json=as_json)
