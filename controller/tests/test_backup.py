# SPDX-License-Identifier: Apache-2.0
"""Backups, their restoration, and migration between stores."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage.changes.history import encode
from frontage.changes.journal import Journal
from frontage.config.store import NatsStore
from frontage.discovery.service import state_file
from frontage.store.places import NatsPlace
from live import LIMIT, installed, installed_service, only
from replicas import nats_servers

PASSPHRASE = "correct horse battery staple"


def frontage(*words: str, fails: str = "") -> str:
    """Run a command, which must succeed, or must fail with an error that contains ``fails``."""
    done = subprocess.run([sys.executable, "-m", "frontage", *words], capture_output=True, text=True, timeout=LIMIT, check=False)
    said = done.stdout + done.stderr
    assert (done.returncode == 0) == (not fails), said
    assert fails in said.replace("\n", " "), said
    return said


@pytest.fixture
def file(folder: Path) -> Path:
    """A configuration with a secret file, a journal with two changes, and a server from discovery."""
    file = folder / "site.yaml"
    text = EXAMPLE.read_text()
    secret = next(line.split()[1] for line in text.splitlines() if line.strip().startswith("secret:"))
    (folder / "key-1.hex").write_text(secret)
    file.write_text(text.replace(f"secret: {secret}", "secret_file: key-1.hex"))
    frontage("drain", "web2", "-c", str(file))
    state_file(file).write_text(json.dumps({"shop": []}))
    return file


@pytest.fixture
def passphrase(folder: Path) -> Path:
    file = folder / "passphrase"
    file.write_text(PASSPHRASE + "\n")
    return file


def test_backup_without_passphrase_has_no_secrets(file: Path, folder: Path) -> None:
    backup, new = folder / "backup", folder / "new"
    secret = (folder / "key-1.hex").read_text()
    assert "2 changes (3 journal lines, chain intact)" in frontage("backup", str(backup), "-c", str(file))
    assert secret not in backup.read_text()
    new.mkdir()
    frontage("restore", str(backup), "-c", str(new / "site.yaml"), fails="does not contain key-1.hex, the secret of key 1")
    shutil.copy(folder / "key-1.hex", new)
    assert "2 changes restored" in frontage("restore", str(backup), "-c", str(new / "site.yaml"))
    assert (new / "site.yaml").read_text() == file.read_text()
    assert Journal(new / "site.yaml").lines() == Journal(file).lines()
    assert Journal(new / "site.yaml").verify() == 3
    assert state_file(new / "site.yaml").exists()
    assert (new / "site.yaml").stat().st_mode & 0o077 == 0
    # The journal goes on: undo returns to a configuration of the backup.
    frontage("undo", "2", "--yes", "-c", str(new / "site.yaml"))
    assert Journal(new / "site.yaml").verify() == 5


def test_inline_secrets_are_only_in_encrypted_backups(folder: Path, passphrase: Path) -> None:
    file, backup = folder / "site.yaml", folder / "backup"
    file.write_text(EXAMPLE.read_text())
    frontage("drain", "web2", "-c", str(file))
    frontage("backup", str(backup), "-c", str(file), fails="a configuration in the journal contains a secret: encrypt the backup")
    assert not backup.exists()
    frontage("backup", str(backup), "-c", str(file), "--passphrase-file", str(passphrase))
    assert "000102" not in backup.read_text()
    assert backup.stat().st_mode & 0o077 == 0


def test_encrypted_backup_has_secret_files(file: Path, folder: Path, passphrase: Path) -> None:
    backup, new = folder / "backup", folder / "new"
    new.mkdir()
    at = ("-c", str(new / "site.yaml"), "--passphrase-file", str(passphrase))
    frontage("backup", str(backup), "-c", str(file), "--passphrase-file", str(passphrase))
    frontage("restore", str(backup), "-c", str(new / "site.yaml"), fails="the backup is encrypted: use --passphrase-file")
    passphrase.write_text("wrong")
    frontage("restore", str(backup), *at, fails="wrong passphrase, or altered backup")
    assert list(new.iterdir()) == []
    passphrase.write_text(PASSPHRASE)
    frontage("restore", str(backup), *at)
    assert (new / "key-1.hex").read_text().strip() == (folder / "key-1.hex").read_text().strip()


def test_altered_backups_and_other_journals_are_rejected(file: Path, folder: Path) -> None:
    backup = folder / "backup"
    frontage("backup", str(backup), "-c", str(file))
    text = backup.read_text()
    backup.write_text(text.replace('"drain"', '"activate"'))
    frontage(
        "restore",
        str(backup),
        "-c",
        str(folder / "new.yaml"),
        fails="line 2 of the journal, or the one before it, has been altered",
    )
    backup.write_text(text[:-100])
    frontage("restore", str(backup), "-c", str(folder / "new.yaml"), fails="not a Frontage backup, or damaged")
    backup.write_text(text)
    frontage("restore", str(backup), "-c", str(file))  # nothing is missing
    frontage("drain", "web1", "-c", str(file))
    frontage("restore", str(backup), "-c", str(file), fails="contains another journal: restore to an empty location")


async def test_restored_controller_writes_nothing_to_the_switch(config_file: Path, folder: Path, passphrase: Path) -> None:
    backup, new = folder / "backup", folder / "new.yaml"
    async with installed_service(config_file) as service:
        async with asyncio.timeout(LIMIT):
            while (last := service.changes.journal.last()) is None or last.result is None:
                await asyncio.sleep(0.05)
        with_passphrase = ("--passphrase-file", str(passphrase))
        await asyncio.to_thread(frontage, "backup", str(backup), "-c", str(config_file), *with_passphrase)
        before = await installed(only(service))
    lines = Journal(config_file).lines()
    frontage("restore", str(backup), "-c", str(new), *with_passphrase)
    async with installed_service(new) as service:
        assert await installed(only(service)) == before
        assert only(service).health.writes.total() == 0
        assert only(service).health.pipelines_set == 0
        assert service.changes.journal.history().lines == len(lines)
    assert Journal(new).lines() == lines


async def test_migration_to_nats_and_back(file: Path, folder: Path) -> None:
    lines = Journal(file).lines()
    async with nats_servers(folder) as nats:
        servers = ", ".join(f'"{url}"' for url in nats.urls)
        shared, back = folder / "shared.yaml", folder / "back.yaml"
        shared.write_text(f"{file.read_text()}\nstore: {{ nats: {{ servers: [{servers}], lease: 2 }} }}\n")
        back.write_text(file.read_text())

        async def run(*words: str, fails: str = "") -> str:
            return await asyncio.to_thread(frontage, *words, fails=fails)

        assert "3 changes migrated" in await run("migrate", str(shared), "-c", str(file))
        found = await NatsPlace(shared, NatsStore(servers=tuple(nats.urls))).read()
        assert found.lines[: len(lines)] == lines
        assert [entry.verb for entry in found.history().entries()] == ["start", "drain", "migrate"]
        assert found.secrets == {"1": (folder / "key-1.hex").read_text().strip()}
        await run("migrate", str(shared), "-c", str(file), fails="contains another journal")

        await run("backup", str(folder / "backup"), "-c", str(shared))
        assert "4 changes migrated" in await run("migrate", str(back), "-c", str(shared))
    assert [encode(line) for line in Journal(back).lines()[: len(found.lines)]] == [encode(line) for line in found.lines]
    assert [entry.verb for entry in Journal(back).entries()] == ["start", "drain", "migrate", "migrate"]
    Journal(back).verify()
    assert back.read_text() == file.read_text()
