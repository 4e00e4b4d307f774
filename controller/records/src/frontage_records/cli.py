# SPDX-License-Identifier: Apache-2.0
"""``frontage records``: the commands of the record store.

The commands import their libraries when they run, so that other commands start without them.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from frontage.cli.common import DEFAULT_CONFIG, ConfigOption, JsonOption, example, fail, load_config, out
from frontage.config import Config
from frontage.config.records import Dns, Records
from frontage_records.tokens import Permission

if TYPE_CHECKING:
    from frontage_records.client import RecordClient
    from frontage_records.jetstream.engine import JetStream

app = typer.Typer(no_args_is_help=True, help="The record store: JSON documents by GUID, over HTTP.")


@app.command(epilog=example("frontage records create -c frontage.yaml"))
def create(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Create an empty store file. An existing file is left as it is."""
    from frontage_records import embedded
    from frontage_records.errors import RecordError

    _, settings = _load(config)
    if settings.file is None:
        fail(f"{config}: records.store: not a file: JetStream needs no preparation, because the server creates streams as needed")
    try:
        embedded.create(settings.file)
    except RecordError as error:
        fail(error)
    out.print(f"{settings.file}: empty store created", highlight=False, soft_wrap=True)


@app.command(epilog=example("frontage records serve -c frontage.yaml"))
def serve(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Serve the records over HTTP until interrupted. Acknowledged writes are on disk."""
    from frontage_records.errors import RecordError
    from frontage_records.server import Server

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    found, settings = _load(config)

    async def run() -> None:
        server = await Server.start(found, settings)
        try:
            host, port = server.address
            out.print(
                f"records at http://{f'[{host}]' if ':' in host else host}:{port}/records/GUID", highlight=False, soft_wrap=True
            )
            await _interrupted()
        finally:
            await server.close()

    try:
        asyncio.run(run())
    except RecordError as error:
        fail(error)
    except OSError as error:
        fail(_taken(f"records.listen: {settings.listen}", error))


@app.command(epilog=example("frontage records groups -c frontage.yaml"))
def groups(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """List the placement groups with their sites, servers and state."""
    from frontage_records.jetstream.moves import group_status

    table = Table("group", "sites", "servers", "state")

    async def show(store: JetStream) -> None:
        for group in sorted(await store.groups.every(), key=lambda group: (group.name[0], int(group.name[1:]))):
            status = await group_status(store.connection, group)
            table.add_row(group.name, " ".join(map(str, group.sites)), " ".join(status.servers), status.description)

    _with_groups(config, show)
    out.print(table)


@app.command(epilog=example("frontage records move c3 2 1 -c frontage.yaml"))
def move(
    name: Annotated[str, typer.Argument(metavar="GROUP", help="The name of the group, as in `frontage records groups`.")],
    sites: Annotated[list[int], typer.Argument(metavar="SITE", help="The site that orders the writes, then the sites of mirrors.")],
    config: ConfigOption = DEFAULT_CONFIG,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds after which the move is rolled back.")] = 300,
) -> None:
    """Move all records of a group, which stay readable and writable. On interruption or timeout, roll the move back."""
    from frontage_records.jetstream import moves

    async def go(store: JetStream) -> None:
        wanted = list(dict.fromkeys(sites))
        await moves.move(store.connection, store.groups, name, wanted, limit=timeout, report=_print)

    _with_groups(config, go)
    out.print(f"{name} is at site {', '.join(map(str, dict.fromkeys(sites)))}", highlight=False, soft_wrap=True)


@app.command(epilog=example("frontage records placement films.example -c frontage.yaml"))
def placement(
    guid: Annotated[str | None, typer.Argument(help="A record; by default, the most requested records.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number of records to show.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show the demand for records, their sites, and the decisions of the last epoch with their reasons."""
    from frontage_records.placement.explain import ask, show

    _, settings = _load(config, as_json=as_json)
    if settings.placement is None:
        fail(f"{config}: the section records.placement is missing: add it to move records near their demand", as_json=as_json)
    found: dict[str, Any] | None = None

    async def explain(store: JetStream) -> None:
        nonlocal found
        found = await ask(store.connection, guid, limit)

    _with_groups(config, explain, as_json=as_json)
    if found is None:
        fail("no answer from a leading controller: start `frontage up` with this configuration", as_json=as_json)
    if guid is not None and not found["records"]:
        fail(f"{guid}: no demand in the last epoch: read or write the record, and wait for the next epoch", as_json=as_json)
    if as_json:
        out.print_json(data=found)
    else:
        show(found, out)


@app.command(epilog=example("frontage records token web --may write"))
def token(
    name: Annotated[str, typer.Argument(help="The name of the bearer, as a note in the file.")],
    may: Annotated[Permission, typer.Option(help="The permission of the bearer; each includes those before it.")] = Permission.READ,
) -> None:
    """Generate a token, and print its entry for the file `records.tokens`. The token itself is not stored."""
    from frontage.tokens import generate

    try:
        secret, entry = generate(name, may)
    except ValueError as error:
        fail(error)
    out.print(f"# Authorization: Bearer {secret}", highlight=False, markup=False, soft_wrap=True)
    out.print(entry, highlight=False, markup=False, soft_wrap=True)


def _print(what: str) -> None:
    out.print(what, highlight=False, soft_wrap=True)


def _with_groups(file: Path, body: Callable[[JetStream], Awaitable[None]], *, as_json: bool = False) -> None:
    from frontage_records.errors import RecordError
    from frontage_records.jetstream.engine import JetStream
    from frontage_records.server import open_store

    config, settings = _load(file, as_json=as_json)
    if settings.file is not None:
        fail(f"{file}: records.store: SQLite has one site and no placement groups: use JetStream", as_json=as_json)

    async def run() -> None:
        store = await open_store(config, settings, serves=False)
        assert isinstance(store, JetStream)
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        try:
            await body(store)
        finally:
            await store.close()

    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        fail("interrupted", as_json=as_json)
    except RecordError as error:
        fail(error, as_json=as_json)


@app.command(epilog=example("frontage records dns -c frontage.yaml"))
def dns(
    config: ConfigOption = DEFAULT_CONFIG,
    metrics: Annotated[int | None, typer.Option(min=1, max=65535, help="Port of the Prometheus metrics on localhost.")] = None,
) -> None:
    """Serve the records as a DNS zone until interrupted."""
    from prometheus_client import start_http_server

    from frontage_records.dns.measured import MeasuredRegions
    from frontage_records.dns.server import Server

    whole, settings, zone = _load_zone(config)
    servers = _client(settings, zone)

    async def run() -> None:
        async with servers as client:
            server = await Server.start(zone, client)
            following = None
            if whole.end_users is not None:
                mapped = MeasuredRegions(whole.end_users, whole.site_ids, server.registry)
                following = asyncio.create_task(mapped.follow(server.zone.regions))
            try:
                if metrics is not None:
                    try:
                        start_http_server(metrics, "127.0.0.1", server.registry)
                    except OSError as error:
                        fail(_taken(f"--metrics {metrics}", error))
                host, port = server.address
                out.print(f"{zone.zone} by DNS at {host} port {port}", highlight=False, soft_wrap=True)
                await _interrupted()
            finally:
                if following is not None:
                    following.cancel()
                    await asyncio.wait([following])
                await server.close()

    try:
        asyncio.run(run())
    except OSError as error:
        fail(_taken(f"records.dns.listen: {zone.listen}", error))


@app.command(epilog=example("frontage records publish -c frontage.yaml"))
def publish(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Publish the service addresses of the configuration's VIPs: records with addresses and HTTPS records for each name."""
    from frontage.service_addresses import assign, published
    from frontage_records.errors import RecordError
    from frontage_records.publish import publish as publish_documents

    whole, settings, zone = _load_zone(config)
    documents = published(assign(whole))
    outside = [name for name in documents if not name.endswith(f".{zone.zone}")]
    if outside:
        fail(f"{config}: records.dns.zone: {outside[0]} is not below {zone.zone}: publish it with `frontage names --zone`")
    servers = _client(settings, zone)

    async def run() -> int:
        async with servers as client:
            changed = [name async for name in publish_documents(client, documents)]
        for name in changed:
            _print(f"{name}: published")
        return len(changed)

    try:
        changed = asyncio.run(run())
    except RecordError as error:
        fail(error)
    _print(f"{len(documents)} records, {changed} changed")


def _load_zone(file: Path) -> tuple[Config, Records, Dns]:
    config, settings = _load(file)
    if settings.dns is None:
        fail(f"{file}: the section records.dns is missing: add it, with at least `zone`, `name_servers` and `contact`")
    return config, settings, settings.dns


def _client(settings: Records, zone: Dns) -> RecordClient:
    """Return a client of the record servers behind a zone."""
    from frontage_records.client import RecordClient
    from frontage_records.routing import Routing

    servers = dict(zone.servers) or f"http{'s' if settings.tls else ''}://{settings.listen}"
    try:
        bearer = None if zone.token is None else zone.token.read_text(encoding="ascii").strip()
        tls = None if zone.authorities is None else ssl.create_default_context(cafile=zone.authorities)
    except (OSError, ValueError) as error:
        fail(error)
    return RecordClient(servers, token=bearer, tls=tls, routing=Routing(controllers=settings.controllers))


def _taken(what: str, error: OSError) -> str:
    return f"{what}: cannot be bound: {error.strerror or error}: give an address of this machine and a free port"


async def _interrupted() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


def _load(file: Path, *, as_json: bool = False) -> tuple[Config, Records]:
    config = load_config(file, as_json=as_json)
    if config.records is None:
        fail(f"{file}: the section records is missing: add it, with at least `store`", as_json=as_json)
    return config, config.records
