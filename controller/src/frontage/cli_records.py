"""``frontage records``: the record store.

Its libraries are loaded by the commands that use them: no other command waits for them.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path

import typer

from frontage.cli_common import DEFAULT_CONFIG, ConfigOption, example, fail, load_config, out
from frontage.config import Config
from frontage.records.settings import Records

app = typer.Typer(no_args_is_help=True, help="The record store: JSON documents by GUID, over HTTP.")


@app.command(epilog=example("frontage records create -c frontage.yaml"))
def create(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Make the store's file, without records. What is there already is left as it is."""
    from frontage.records import embedded
    from frontage.records.errors import RecordError

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
    from frontage.records.errors import RecordError
    from frontage.records.serve import Server

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    found, settings = _load(config)

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        server = await Server.start(found, settings)
        try:
            host, port = server.address
            out.print(
                f"records at http://{f'[{host}]' if ':' in host else host}:{port}/records/GUID", highlight=False, soft_wrap=True
            )
            await stop.wait()
        finally:
            await server.close()

    try:
        asyncio.run(run())
    except (RecordError, OSError) as error:
        fail(error)


def _load(file: Path) -> tuple[Config, Records]:
    config = load_config(file, as_json=False)
    if config.records is None:
        fail(f"{file}: has no records; add the section, with at least `store`")
    return config, config.records
