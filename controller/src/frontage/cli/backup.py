# SPDX-License-Identifier: Apache-2.0
"""``frontage backup``, ``restore`` and ``migrate``."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Annotated

import typer

from frontage.cli.common import DEFAULT_CONFIG, ConfigOption, JsonOption, example, fail, out
from frontage.config import ConfigError
from frontage.config.key_file import OWNER_ONLY, replace

PassphraseOption = Annotated[
    Path | None,
    typer.Option("--passphrase-file", metavar="FILE", help="Encrypt with the passphrase in FILE, and include the secrets of keys."),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog=example("frontage backup frontage.backup --passphrase-file passphrase"))(backup)
    app.command(epilog=example("frontage restore frontage.backup -c frontage.yaml --passphrase-file passphrase"))(restore)
    app.command(epilog=example("frontage migrate new.yaml -c frontage.yaml"))(migrate)


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
    passphrase_file: PassphraseOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Write the configuration, the journal and the allocations to FILE. Controllers may be running."""
    from frontage.store.places import place_of
    from frontage.store.snapshot import SnapshotError, read_passphrase

    async def run() -> None:
        passphrase = read_passphrase(passphrase_file)
        snapshot = await place_of(config, config.read_text(encoding="utf-8")).read()
        replace(file, snapshot.encode(passphrase), OWNER_ONLY)
        _report(f"{file}: {len(snapshot.history().entries())} changes", len(snapshot.lines), as_json=as_json)

    try:
        asyncio.run(run())
    except (SnapshotError, ConfigError, OSError, UnicodeDecodeError) as error:
        fail(error, as_json=as_json)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file written by `frontage backup`.")],
    passphrase_file: PassphraseOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Write the configuration of a backup to CONFIG, and the journal to the location that this configuration specifies."""
    from frontage.store.places import place_of, write_secrets
    from frontage.store.snapshot import Snapshot, SnapshotError, read_passphrase

    async def run() -> None:
        snapshot = Snapshot.decode(file.read_text(encoding="utf-8"), read_passphrase(passphrase_file))
        write_secrets(config, snapshot.configuration, snapshot.secrets)
        place = place_of(config, snapshot.configuration)
        await place.require_idle()
        await place.restore(snapshot)
        _report(f"{config}: {len(snapshot.history().entries())} changes restored", len(snapshot.lines), as_json=as_json)

    try:
        asyncio.run(run())
    except (SnapshotError, ConfigError, OSError, UnicodeDecodeError) as error:
        fail(error, as_json=as_json)


def migrate(
    new: Annotated[
        Path,
        typer.Argument(metavar="NEW", help="The new configuration: a copy of CONFIG with another `store` section, or without one."),
    ],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Move to the store that NEW specifies: copy the journal and the allocations, and use NEW. Stop all controllers first."""
    from frontage.changes.history import Author
    from frontage.service.changes import user_name
    from frontage.store.places import moved, place_of
    from frontage.store.snapshot import SnapshotError

    async def run() -> None:
        old_text, new_text = (path.read_text(encoding="utf-8") for path in (config, new))
        old_place, new_place = place_of(config, old_text), place_of(new, new_text)
        for place in (old_place, new_place):
            await place.require_idle()
        snapshot = await old_place.read()
        snapshot = moved(snapshot, new_text, Author(user_name(os.getuid()), "command"))
        await new_place.restore(snapshot)
        _report(
            f"{new}: {len(snapshot.history().entries())} changes migrated: run `frontage up {new}`",
            len(snapshot.lines),
            as_json=as_json,
        )

    try:
        if config.resolve() == new.resolve():
            fail("NEW and CONFIG are the same file: use a copy with another `store` section", as_json=as_json)
        asyncio.run(run())
    except (SnapshotError, ConfigError, OSError, UnicodeDecodeError) as error:
        fail(error, as_json=as_json)


def _report(text: str, lines: int, *, as_json: bool) -> None:
    if as_json:
        out.print_json(json.dumps({"ok": True, "lines": lines}))
    else:
        out.print(f"{text} ({lines} journal lines, chain intact)", highlight=False, markup=False, soft_wrap=True)
