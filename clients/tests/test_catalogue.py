# SPDX-License-Identifier: Apache-2.0
"""The catalogue and the reading of its entries."""

from pathlib import Path

import pytest

from catalogue import CatalogueError, Client, read


def test_every_command_of_the_catalogue_is_filled_in() -> None:
    names = ("folder", "out", "name", "host", "port", "url", "path", "page", "certificate")
    values = {name: name.upper() for name in names}
    for client in read():
        for migrating in (False, True):
            command = client.command(Path("/bin/it"), values, migrating)
            assert not any("{" in word for word in command), client.name
            assert (command != client.command(Path("/bin/it"), values)) == (migrating and bool(client.migrate))


def test_entry_with_unknown_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "clients.toml"
    path.write_text('[[client]]\nname = "it"\ncommand = "it"\n')
    with pytest.raises(CatalogueError, match=r"clients.toml: it: .*command"):
        read(path)


def test_program_from_environment_must_exist() -> None:
    client = Client("it", "no-such-program", "make it", [], [], variable="IT")
    assert client.installed_program({}) is None
    assert client.installed_program({"IT": "/bin/true"}) == Path("/bin/true")
    with pytest.raises(CatalogueError, match="IT=/no/such: program not found"):
        client.installed_program({"IT": "/no/such"})
