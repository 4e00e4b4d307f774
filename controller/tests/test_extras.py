# SPDX-License-Identifier: Apache-2.0
"""The controller without the libraries of its extras `mapping` and `health`, and without the record store."""

from __future__ import annotations

import subprocess
import sys

BLOCK = """
import sys

MISSING = ("aiohttp", "aioquic", "dnslib", "frontage_records", "h2", "nats", "numpy", "psycopg", "sqlalchemy")

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True, check=False)


def test_controller_needs_no_optional_library() -> None:
    done = run("import frontage.service.daemon, frontage.service.metrics")
    assert done.returncode == 0, done.stderr


def test_missing_record_store_is_reported_with_fix() -> None:
    hide = """
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "frontage_records" else found(name, package)
sys.argv = ["frontage", "records", "serve", "-c", "frontage.yaml"]
from frontage.cli import main
main()
"""
    done = run(hide)
    assert done.returncode == 1
    assert "frontage records: the record store is not installed: run `pip install frontage-records`" in done.stderr
