# SPDX-License-Identifier: Apache-2.0
"""Tests of `tools/import_cycles.py`: it finds import cycles wherever the imports stand in a module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import import_cycles
from rust_cycles import cycles

TOOLS = Path(__file__).resolve().parents[1]


def found(folder: Path, sources: dict[str, str]) -> list[list[str]]:
    for name, text in sources.items():
        file = folder / "p" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return cycles(import_cycles.dependencies(import_cycles.modules(folder / "p")))


@pytest.mark.parametrize(
    "sources",
    [
        {"a.py": "from p.b import B", "b.py": "import p.a"},
        {"a.py": "from p import b", "b.py": "def f():\n    from p import a\n"},
        {"a.py": "from . import b", "b.py": "if TYPE_CHECKING:\n    from .a import A\n"},
        {"a.py": "from .c.b import B", "c/__init__.py": "", "c/b.py": "from ..a import A"},
    ],
)
def test_modules_that_import_each_other_are_a_cycle(tmp_path: Path, sources: dict[str, str]) -> None:
    [cycle] = found(tmp_path, sources)
    assert [name.rpartition(".")[2] for name in cycle] == ["a", "b"]


def test_package_and_module_that_import_each_other_are_a_cycle(tmp_path: Path) -> None:
    assert found(tmp_path, {"__init__.py": "from p.a import A", "a.py": "from p import B"}) == [["p", "p.a"]]


@pytest.mark.parametrize(
    "sources",
    [
        {"a.py": "from p.b import B", "b.py": "import sys, q.a", "__init__.py": "from p.a import A"},
        {"a.py": "from p.b import x", "b/__init__.py": "from p.b.c import x", "b/c.py": "x = 1"},
    ],
)
def test_imports_in_one_direction_are_accepted(tmp_path: Path, sources: dict[str, str]) -> None:
    assert found(tmp_path, sources) == []


def test_command_names_the_cycle(tmp_path: Path) -> None:
    found(tmp_path, {"a.py": "import p.b", "b.py": "import p.a"})
    command = [sys.executable, str(TOOLS / "import_cycles.py"), str(tmp_path / "p")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "p.a, p.b" in result.stdout


def test_controller_has_no_import_cycles() -> None:
    package = TOOLS.parent / "controller" / "src" / "frontage"
    assert cycles(import_cycles.dependencies(import_cycles.modules(package))) == []
