# SPDX-License-Identifier: Apache-2.0
"""Tests of the prose linter: it rejects the wording that `docs/writing.md` forbids, and accepts its replacements."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "prose"))

import commits  # noqa: E402
import extract  # noqa: E402
import lint  # noqa: E402

REJECTED = [
    "Who has one server alone has nobody to ask instead.",
    "On a lent path noq is mute.",
    "What is no file has no answer of a file",
    "A client takes what comes late for sent again",
    "Whether a service stays because what is better about the wanted sites may be chance.",
    "How many sites it has is none, nor is that one is gone.",
    '"9" is no bandwidth; write 1gbit',
    "Tokens are refused on another address than a loopback one without `tls`.",
    "# Which paths it lost",
    "Two names that hid the modules that they are called like, of which nobody is told",
    "That a server is silent is found by its client.",
    "What comes late is dropped.",
    "Of the arrays.",
    "Its path.",
    "Prefixes of which " + "one is longer than another and " * 12 + "that is all.",
]

ACCEPTED = [
    "With a single server there is nothing to fail over to, so the request has no timeout.",
    "While a path is delegated, the balancer's own stack must not send on it.",
    "Clients treat packet numbers outside their window as duplicates.",
    "Return true if the improvement is within statistical error.",
    'invalid bandwidth "9": add a unit, for example 1gbit',
    "Without `tls`, tokens are accepted on loopback addresses only.",
    "# Path loss",
    "The rate is no longer limited, and there is no state per connection.",
    "What does the switch drop?",
    "Return the server that owns `sid`.",
]

CARRIERS = {
    "page.md": "{}\n",
    "module.py": '"""{}"""\n',
    "comment.py": "x = 1\n# {}\n",
    "lib.rs": "//! {}\npub fn f() {{}}\n",
    "item.rs": "/// {}\npub fn f() {{}}\n",
    "table.p4": "control C() {{ apply {{ }} }} // {}\n",
    "agent.c": "/* {} */\nint x;\n",
    "scenario.yaml": "key: 1\n# {}\n",
}


def findings(folder: Path, name: str, text: str) -> list[lint.Finding]:
    file = folder / name
    file.write_text(text)
    return lint.lint([file], root=folder)


def carried(carrier: str, text: str) -> str:
    """Return the content of a file of this kind whose prose is the text."""
    text = text if carrier.endswith(".md") else text.removeprefix("# ")
    return CARRIERS[carrier].format(text.replace('"', "'") if carrier.endswith(".py") else text)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_forbidden_wording_is_rejected_and_plain_wording_accepted(tmp_path: Path, carrier: str) -> None:
    texts = {tmp_path / f"{i}-{carrier}": text for i, text in enumerate(REJECTED + ACCEPTED)}
    for file, text in texts.items():
        file.write_text(carried(carrier, text))
    rejected = {tmp_path / finding.path for finding in lint.lint(texts, root=tmp_path)}
    assert [text for file, text in texts.items() if file in rejected] == REJECTED


def test_finding_names_line_of_source(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "a.rs", "// Sorted.\nlet x = 1; // Fine.\n\nlet y = 2; // Of the arrays.\n")
    assert (found.path, found.line, found.rule) == ("a.rs", 4, "RelativeSubject")


def test_code_is_not_prose(tmp_path: Path) -> None:
    assert not findings(tmp_path, "a.rs", 'fn lent() { let nobody = "// Of the arrays."; let c = \'"\'; }\n')
    assert not findings(tmp_path, "a.md", "Run it:\n\n    Who has lent it to nobody\n\nand `nobody is told`.\n")


def test_negated_noun_in_message_is_rejected(tmp_path: Path) -> None:
    assert findings(tmp_path, "a.rs", 'fn f() { bail!("{text} is no URL") }\n')
    assert findings(tmp_path, "a.py", 'raise ValueError(f"{text} is no URL")\n')
    assert not findings(tmp_path, "b.py", 'raise ValueError(f"{text} is no longer valid")\n')


def test_relative_clause_as_test_name_is_rejected(tmp_path: Path) -> None:
    assert findings(tmp_path, "a.py", "def test_who_is_gone_is_told() -> None: ...\n")
    assert findings(tmp_path, "a.rs", "#[test]\nfn what_is_no_file_has_no_answer_of_a_file() {}\n")
    assert not findings(tmp_path, "b.rs", "#[test]\nfn non_file_target_returns_404() {}\n")


def test_long_markdown_line_is_rejected(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "a.md", "short\n\n" + "word " * 23 + "and six more.\n")
    assert (found.line, found.rule) == (3, "LineLength")


def test_directives_and_literals_are_not_extracted() -> None:
    lines = extract.prose(Path("a.py"), "x = '# not a comment'  # noqa: E501\n")
    assert lines == []


def test_missing_vale_names_the_fix(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Text.\n")
    with pytest.raises(lint.LintError, match="make build/vale"):
        lint.lint([tmp_path / "a.md"], vale=tmp_path / "vale", root=tmp_path)


@pytest.mark.parametrize(
    "subject",
    [
        "Two names that hid the modules that they are called like",
        "records: moved to a folder of their own",
        "records: the speed of groups",
        "handoff: detect unreachable real servers from client ACKs, not from timers that wait",
        "handoff: detect unreachable real servers.",
        "handoff: adds a test",
    ],
)
def test_bad_commit_subject_is_rejected(subject: str) -> None:
    assert commits.problem(subject)


@pytest.mark.parametrize(
    "subject", ["handoff: detect unreachable real servers from client ACKs", "p4, controller: address review", "Merge branch 'x'"]
)
def test_good_commit_subject_is_accepted(subject: str) -> None:
    assert commits.problem(subject) is None
