# SPDX-License-Identifier: Apache-2.0
"""The programs on PATH."""

from pathlib import Path

import pytest

import toolsets
from toolsets import NAMES, ToolError


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_links_have_the_names_of_bmv2_and_p4c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolsets, "BUILD", tmp_path / "build")
    for variable, name in (("SOFTSWITCH", "switch"), ("SOFTSWITCH_P4C", "compiler")):
        monkeypatch.setenv(variable, str(program(tmp_path, name)))
    for _ in range(2):
        (folder,) = toolsets.softswitch().path
        assert {link.name for link in folder.iterdir()} == set(NAMES)
    assert (folder / "simple_switch_grpc").resolve() == tmp_path / "switch"
    assert (folder / "p4c").resolve() == tmp_path / "compiler"


def test_missing_program_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolsets, "BUILD", tmp_path / "build")
    monkeypatch.setenv("SOFTSWITCH", str(tmp_path / "none"))
    with pytest.raises(ToolError, match=r"missing .*/none: build it with `make setup`, or set SOFTSWITCH"):
        toolsets.softswitch()


def test_peers_are_both_or_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("P4C_BM2", raising=False)
    monkeypatch.delenv("BMV2", raising=False)
    assert toolsets.peers() is None
    monkeypatch.setenv("BMV2", str(program(tmp_path, "simple_switch_grpc")))
    with pytest.raises(ToolError, match="set both"):
        toolsets.peers()
    monkeypatch.setenv("P4C_BM2", str(program(tmp_path, "p4c-bm2-ss")))
    found = toolsets.peers()
    assert found is not None and found.path == (tmp_path, tmp_path)


def test_peer_needs_the_name_that_scripts_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("P4C_BM2", raising=False)
    monkeypatch.setenv("BMV2", str(program(tmp_path, "simple_switch_grpc-thrift")))
    with pytest.raises(ToolError, match="not a program with the name simple_switch_grpc"):
        toolsets.peers()
