"""``frontage records``: the record store.

Its libraries are loaded by the commands that use them: no other command waits for them.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from frontage.cli.common import DEFAULT_CONFIG, ConfigOption, example, fail, load_config, out
from frontage.config import Config
from frontage.config.records import Records
from frontage_records.tokens import May

if TYPE_CHECKING:
    from frontage_records.jetstream.engine import JetStream

app = typer.Typer(no_args_is_help=True, help="The record store: JSON documents by GUID, over HTTP.")


@app.command(epilog=example("frontage records create -c frontage.yaml"))
def create(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Make the store's file, without records. What is there already is left as it is."""
    from frontage_records import embedded
    from frontage_records.errors import RecordError

    _, settings = _load(config)
    if settings.file is None:
        fail(f"{config}: records.store is no file: JetStream's streams are made where records need them")
    try:
        embedded.create(settings.file)
    except RecordError as error:
        fail(error)
    out.print(f"{settings.file}: an empty store", highlight=False, soft_wrap=True)


@app.command(epilog=example("frontage records serve -c frontage.yaml"))
def serve(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Serve the records over HTTP until interrupted. A write that was acknowledged is on the disk."""
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


@app.command(epilog=example("frontage records classes -c frontage.yaml"))
def classes(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """List the classes of placement: where each is, and whether it has all its servers."""
    from frontage_records.jetstream.moves import standing

    table = Table("class", "sites", "servers", "state")

    async def show(store: JetStream) -> None:
        for one in sorted(await store.classes.every(), key=lambda one: (one.name[0], int(one.name[1:]))):
            now = await standing(store.link, one)
            table.add_row(one.name, " ".join(map(str, one.sites)), " ".join(now.servers), now.says)

    _with_classes(config, show)
    out.print(table)


@app.command(epilog=example("frontage records move c3 2 1 -c frontage.yaml"))
def move(
    name: Annotated[str, typer.Argument(metavar="CLASS", help="As `frontage records classes` calls it.")],
    sites: Annotated[list[int], typer.Argument(metavar="SITE", help="That which shall order the writes, then the mirrors'.")],
    config: ConfigOption = DEFAULT_CONFIG,
    patience: Annotated[float, typer.Option(min=1, help="Seconds; a move that takes longer is taken back.")] = 300,
) -> None:
    """Move all records of a class; they stay readable and writable. Interrupted, or out of patience, it is taken back."""
    from frontage_records.jetstream import moves

    async def go(store: JetStream) -> None:
        found = list(dict.fromkeys(sites))
        await moves.move(store.link, store.classes, name, found, patience=patience, report=_say)

    _with_classes(config, go)
    out.print(f"{name} is at site {', '.join(map(str, dict.fromkeys(sites)))}", highlight=False, soft_wrap=True)


@app.command(epilog=example("frontage records token web --may write"))
def token(
    name: Annotated[str, typer.Argument(help="Who gets it, for those who read the file.")],
    may: Annotated[May, typer.Option(help="What its bearer may do; each includes those before.")] = May.READ,
) -> None:
    """Draw a token, and print what belongs into the file `records.tokens`. The token itself is nowhere kept."""
    from frontage_records.tokens import draw

    try:
        secret, entry = draw(name, may)
    except ValueError as error:
        fail(error)
    out.print(f"# Authorization: Bearer {secret}", highlight=False, markup=False, soft_wrap=True)
    out.print(entry, highlight=False, markup=False, soft_wrap=True)


def _say(what: str) -> None:
    out.print(what, highlight=False, soft_wrap=True)


def _with_classes(file: Path, body: Callable[[JetStream], Awaitable[None]]) -> None:
    from frontage_records.errors import RecordError
    from frontage_records.jetstream.engine import JetStream
    from frontage_records.server import open_store

    config, settings = _load(file)
    if settings.file is not None:
        fail(f"{file}: records.store is SQLite's file, which has one site and no classes")

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
        fail("interrupted")
    except RecordError as error:
        fail(error)


@app.command(epilog=example("frontage records dns -c frontage.yaml"))
def dns(
    config: ConfigOption = DEFAULT_CONFIG,
    metrics: Annotated[int | None, typer.Option(min=1, max=65535, help="Port of Prometheus metrics, on localhost.")] = None,
) -> None:
    """Answer ordinary resolvers from the records until interrupted."""
    from prometheus_client import start_http_server

    from frontage_records.client import RecordClient
    from frontage_records.dns.mapped import Mapped
    from frontage_records.dns.server import Server
    from frontage_records.routing import Routing

    whole, settings = _load(config)
    zone = settings.dns
    if zone is None:
        fail(f"{config}: records has no dns; add the section, with at least `zone`, `name_servers` and `contact`")
    servers = dict(zone.servers) or f"http{'s' if settings.tls else ''}://{settings.listen}"
    try:
        bearer = None if zone.token is None else zone.token.read_text(encoding="ascii").strip()
        tls = None if zone.authorities is None else ssl.create_default_context(cafile=zone.authorities)
    except (OSError, ValueError) as error:
        fail(error)

    async def run() -> None:
        routing = Routing(controllers=settings.controllers)
        async with RecordClient(servers, token=bearer, tls=tls, routing=routing) as client:
            server = await Server.start(zone, client)
            following = None
            if whole.end_users is not None:
                mapped = Mapped(whole.end_users, whole.site_ids, server.registry)
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


def _taken(what: str, error: OSError) -> str:
    return f"{what} cannot be had: {error.strerror or error}; give an address of this machine, and a port that is free"


async def _interrupted() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


def _load(file: Path) -> tuple[Config, Records]:
    config = load_config(file, as_json=False)
    if config.records is None:
        fail(f"{file}: has no records; add the section, with at least `store`")
    return config, config.records
