# SPDX-License-Identifier: Apache-2.0
"""Tests of `tools/freshness.py`: stamps in pages, and the commits that make a page too old."""

import subprocess
import sys
from pathlib import Path

import pytest
from pages import REPOSITORY, RESULTS
from test_commands import unknown

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import freshness

PAGE = "docs/results/mobile.md"


def run_git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def commit(root: Path, name: str) -> None:
    """Commit a change of a file."""
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as opened:
        opened.write("x\n")
    run_git(root, "add", name)
    run_git(root, "commit", "-m", "test: change a file")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with a measured page."""
    monkeypatch.setattr(freshness, "PAGES", {PAGE: freshness.Measurement("make mobile", ("code", "more"))})
    run_git(tmp_path, "init")
    commit(tmp_path, PAGE)
    commit(tmp_path, "code/a.rs")
    return tmp_path


def test_page_without_stamp_passes(root: Path) -> None:
    assert freshness.commit_of((root / PAGE).read_text()) is None
    assert not list(freshness.problems(root, limit=0))


def test_page_is_too_old_after_more_commits_than_the_limit(root: Path) -> None:
    freshness.stamp(PAGE, root)
    for name in ("code/a.rs", "other/b.rs", "code/README.md", "code/tests/c.rs", "more/d.py"):
        commit(root, name)
    assert not list(freshness.problems(root, limit=2))
    (problem,) = freshness.problems(root, limit=1)
    assert problem.startswith(f"{PAGE}: 2 commits changed the measured code since ")
    assert problem.endswith("run `make mobile`")


def test_new_stamp_replaces_old_one(root: Path) -> None:
    freshness.stamp(PAGE, root)
    commit(root, "code/a.rs")
    freshness.stamp(PAGE, root)
    freshness.stamp(PAGE, root)
    assert (
        root / PAGE
    ).read_text() == f"x\n\nMeasured at commit `{freshness.git('rev-parse', '--short=12', 'HEAD', root=root)}`.\n"
    assert not list(freshness.problems(root, limit=0))


def test_stamp_names_local_changes_of_measured_code(root: Path) -> None:
    (root / "code" / "a.rs").write_text("changed")
    freshness.stamp(PAGE, root)
    assert (root / PAGE).read_text().endswith(" with local changes.\n")
    assert freshness.commit_of((root / PAGE).read_text())


def test_unknown_commit_is_reported(root: Path) -> None:
    (root / PAGE).write_text("x\n\nMeasured at commit `0123456789ab`.\n")
    assert not list(freshness.problems(root, limit=0))
    (problem,) = freshness.unknown(root)
    assert "0123456789ab, which is not in this history" in problem


def test_every_page_of_results_is_checked() -> None:
    pages = {str(page.relative_to(REPOSITORY)) for page in RESULTS.glob("*.md")} - {"docs/results/README.md"}
    assert pages | {"docs/performance.md"} == set(freshness.PAGES)


@pytest.mark.parametrize("page", freshness.PAGES)
def test_origins_of_pages_exist(page: str) -> None:
    measurement = freshness.PAGES[page]
    assert not unknown(measurement.command)
    assert [folder for folder in measurement.folders if not (REPOSITORY / folder).exists()] == []
