# SPDX-License-Identifier: Apache-2.0
"""The journal of changes."""

from __future__ import annotations

import asyncio
import json
import shutil
import stat
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conftest import EXAMPLE
from frontage.changes import journal as journal_module
from frontage.changes import verbs
from frontage.changes.history import INTERRUPTED, Author, JournalError, digest
from frontage.changes.journal import Beginning, Journal
from frontage.config import ConfigError
from frontage.config.edit import EditError
from frontage.config.vips import Policy, ServerState
from frontage.service.changes import WRITTEN, Changes, NotInstalledError

ALICE = Author("alice", "command")
DRAIN = verbs.set_server("web2", state=ServerState.DRAINING)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(shutil.copy(EXAMPLE, tmp_path / "demo.yaml"))


async def without_controller() -> None:
    return None


def changes_of(file: Path) -> Changes:
    return Changes(file, without_controller)


async def test_changes_are_recorded_with_author_arguments_and_result(file: Path) -> None:
    changes, before = changes_of(file), file.read_text()
    done = await changes.make(DRAIN, ALICE, idempotency_key="one")
    assert (done.number, done.changed, done.is_installed) == (2, "server web2 is draining", False)
    start, drain = changes.journal.entries()
    assert (start.verb, start.before, start.after, start.origin) == ("start", None, digest(before), "file")
    assert (drain.author, drain.origin, drain.verb) == ("alice", "command", "drain")
    assert (drain.arguments, drain.idempotency_key) == ({"name": "web2"}, "one")
    assert (drain.result, changes.journal.text(drain.after)) == (WRITTEN, file.read_text())
    assert changes.journal.verify() == 3  # two changes and a result


async def test_a_change_without_effect_is_not_recorded(file: Path) -> None:
    changes = changes_of(file)
    await changes.make(DRAIN, ALICE)
    assert (await changes.make(DRAIN, ALICE)).number is None
    assert len(changes.journal.entries()) == 2


async def test_a_rejected_change_is_not_recorded(file: Path) -> None:
    changes = changes_of(file)
    await changes.make(DRAIN, ALICE)
    with pytest.raises(Exception, match="unknown server"):
        await changes.make(verbs.remove_server("web9"), ALICE)
    assert len(changes.journal.entries()) == 2


async def test_a_change_that_the_switches_reject_has_the_error_as_result(file: Path) -> None:
    async def install() -> list[str] | None:
        raise NotInstalledError("edge2: no room")

    changes = Changes(file, install)
    with pytest.raises(NotInstalledError):
        await changes.make(DRAIN, ALICE)
    assert changes.journal.entries()[-1].result == "not installed: edge2: no room"


async def test_changes_share_an_installation_that_begins_after_them(file: Path) -> None:
    waiting, installed = asyncio.Event(), []

    async def install() -> list[str] | None:
        text = file.read_text()
        await waiting.wait()
        installed.append(text)
        return []

    changes = Changes(file, install)
    made = [asyncio.create_task(changes.make(verbs.set_server("web1", weight=weight), ALICE)) for weight in range(2, 12)]
    while (last := changes.journal.last()) is None or last.number < len(made) + 1:
        await asyncio.sleep(0.01)
    waiting.set()
    assert all(done.is_installed for done in await asyncio.gather(*made))
    assert len(installed) <= 3
    assert installed[-1] == file.read_text()


async def test_waiting_changes_are_written_together_and_rejected_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes, written = changes_of(file), []
    changes.note()
    write = Changes._write_together

    def count(self: Changes, waiting: list[Any]) -> None:
        written.append(len(waiting))
        write(self, waiting)

    monkeypatch.setattr(Changes, "_write_together", count)
    wanted = [verbs.set_server("web1", weight=weight) for weight in range(2, 22)]
    wanted.insert(5, verbs.remove_server("web9"))  # impossible
    made = await asyncio.gather(*(changes.make(change, ALICE) for change in wanted), return_exceptions=True)
    assert isinstance(made[5], EditError)
    assert [one.number for one in made if not isinstance(one, BaseException)] == list(range(2, 22))
    assert written == [1, 20]
    entries = changes.journal.entries()
    assert [entry.arguments["weight"] for entry in entries[1:]] == list(range(2, 22))
    assert all(entry.before == last.after for last, entry in pairwise(entries))
    assert "weight: 21" in changes.journal.text(entries[-1].after) == file.read_text()
    assert changes.journal.verify() == 1 + 2 * 20

    # One of them makes the configuration invalid: the others are made.
    written.clear()
    wanted = [verbs.set_server("web1", weight=weight) for weight in range(2, 5)]
    wanted.insert(2, verbs.add_server(name="bad", vip="unknown", address="10.0.0.99", port=1))
    made = await asyncio.gather(*(changes.make(change, ALICE) for change in wanted), return_exceptions=True)
    assert [isinstance(one, ConfigError) for one in made] == [False, False, True, False]
    assert written == [1, 3, 1, 1, 1]
    assert "weight: 4" in file.read_text()


async def test_edits_with_an_editor_are_recorded(file: Path) -> None:
    changes = changes_of(file)
    assert changes.note() == 1
    assert changes.note() is None
    file.write_text(file.read_text().replace("alpha: 0.5", "alpha: 0.75"))
    assert changes.note() == 2
    last = changes.journal.last()
    assert last is not None
    assert (last.verb, last.origin) == ("edit", "file")
    # A command also notices an edit that no controller has seen.
    file.write_text(file.read_text().replace("alpha: 0.75", "alpha: 0.25"))
    await changes.make(DRAIN, ALICE)
    assert [entry.verb for entry in changes.journal.entries()] == ["start", "edit", "edit", "drain"]


async def test_a_change_whose_process_ended_before_the_edit_counts_as_interrupted(file: Path) -> None:
    changes, text = changes_of(file), file.read_text()
    changes.note()
    changes.journal.begin(Beginning(DRAIN, ALICE, text, DRAIN.edit(text)))
    assert changes.note() is None
    assert changes.journal.entries()[-1].result == INTERRUPTED
    await changes.make(DRAIN, ALICE)
    assert [(entry.verb, entry.result) for entry in changes.journal.entries()][1:] == [("drain", INTERRUPTED), ("drain", WRITTEN)]


async def test_changes_whose_process_ended_before_their_edit_count_as_interrupted(file: Path) -> None:
    changes, text = changes_of(file), file.read_text()
    changes.note()
    drained = DRAIN.edit(text)
    hashed = verbs.set_policy("shop", Policy.HASH)
    changes.journal.begin(Beginning(DRAIN, ALICE, text, drained), Beginning(hashed, ALICE, drained, hashed.edit(drained)))
    assert changes.note() is None
    assert [entry.result for entry in changes.journal.entries()[1:]] == [INTERRUPTED, INTERRUPTED]
    assert changes.journal.history().made() == changes.journal.entries()[0]


async def test_altered_lines_are_found(file: Path) -> None:
    changes = changes_of(file)
    await changes.make(DRAIN, ALICE)
    log = changes.journal.folder / "log"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines).replace("alice", "mallory"))
    with pytest.raises(JournalError, match=r"log:2: .*altered or removed"):
        changes.journal.verify()
    log.write_text(lines[0] + lines[2])
    with pytest.raises(JournalError, match="log:2: "):
        changes.journal.verify()
    log.write_text(lines[0] + "garbage\n")
    with pytest.raises(JournalError, match="log:2: not a line of a journal"):
        changes.journal.entries()


async def test_a_line_that_a_crash_cut_off_is_removed(file: Path) -> None:
    changes = changes_of(file)
    await changes.make(DRAIN, ALICE)
    with (changes.journal.folder / "log").open("a") as log:
        log.write('{"number": 3, "verb": "dr')
    assert len(changes.journal.entries()) == 2
    await changes.make(verbs.set_policy("shop", Policy.HASH), ALICE)
    assert len(changes.journal.entries()) == 3
    assert changes.journal.verify() == 5


async def test_altered_configurations_are_found(file: Path) -> None:
    changes = changes_of(file)
    await changes.make(DRAIN, ALICE)
    entry = changes.journal.entry(2)
    (changes.journal.folder / "texts" / f"{entry.after}.yaml").write_text("altered")
    with pytest.raises(JournalError, match="has been altered"):
        changes.journal.text(entry.after)
    with pytest.raises(JournalError, match=r"unknown change 7 \(the journal has 1 to 2\)"):
        changes.journal.entry(7)


async def test_only_the_owner_reads_the_journal_because_it_contains_secrets(file: Path) -> None:
    changes = changes_of(file)
    await changes.make(DRAIN, ALICE)
    for path in (changes.journal.folder, *changes.journal.folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


async def test_old_configurations_are_removed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "KEPT_TEXTS", 3)
    changes = changes_of(file)
    for weight in (2, 3, 4, 5):
        await changes.make(verbs.set_server("web1", weight=weight), ALICE)
    assert len(list((changes.journal.folder / "texts").iterdir())) == 3
    first, *_, last = changes.journal.entries()
    assert last.before is not None
    changes.journal.text(last.before)
    with pytest.raises(JournalError, match="the journal keeps only the last"):
        changes.journal.text(first.after)


def test_journal_of_a_symbolic_link_is_next_to_the_file(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "folder" / "link.yaml"
    link.parent.mkdir()
    link.symlink_to(file)
    assert Journal(link).folder == Journal(file).folder


async def test_lines_are_json(file: Path) -> None:
    changes = changes_of(file)
    await changes.make(DRAIN, ALICE)
    for line in (changes.journal.folder / "log").read_text().splitlines():
        assert {"number", "time", "previous", "hash"} <= json.loads(line).keys()
