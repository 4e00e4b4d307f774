# SPDX-License-Identifier: Apache-2.0
"""Alert rules and the dashboard, with promtool and a real Prometheus that scrapes a real controller."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from test_service import LIMIT, command, reconciled, until, up

MONITORING = Path(__file__).parents[1] / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
QUERIES = [
    (panel["title"], target["expr"])
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", [])
    if "ALERTS" not in target["expr"]
]
WITHOUT_DATA = {
    "Failed servers", "Slow start", "Limits", "SYN floods", "Drops of AIFO", "Health checks", "BGP", "Dropped packets",
    "Selection of servers", "Reconciliation",
}  # fmt: skip
"""Panels about what the example does not use, or about traffic that it does not have."""


def test_every_rule_is_tested() -> None:
    rules = set(re.findall(r"alert: (\w+)", (MONITORING / "alerts.yml").read_text()))
    tested = set(re.findall(r"alertname: (\w+)", (MONITORING / "alerts_test.yml").read_text()))
    assert rules == tested


def test_metrics_of_rules_and_panels_exist() -> None:
    """A misspelt metric would never fire. The documentation lists all metrics."""
    used = re.findall(r"frontage_[a-z0-9_]+", (MONITORING / "alerts.yml").read_text() + json.dumps(DASHBOARD))
    sources = "\n".join(file.read_text() for file in (MONITORING.parent / "src").rglob("*.py"))
    for name in set(used):
        base = re.sub(r"_(total|bucket|count|sum)$", "", name)
        unit = re.sub(r"_(packets|bytes)$", "_{unit}", base)
        assert f'"{base}"' in sources or f'f"{unit}"' in sources, name


def test_promtool_accepts_and_tests_the_rules() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is missing: install Debian's package prometheus")
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run(["promtool", *words], cwd=MONITORING, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class Prometheus:
    """A Prometheus server that scrapes one target, with our alert rules."""

    def __init__(self, folder: Path, target: str):
        self.url = f"http://127.0.0.1:{free_port()}"
        file = folder / "prometheus.yml"
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(MONITORING / "alerts.yml")],
            "scrape_configs": [{"job_name": "frontage", "static_configs": [{"targets": [target]}]}],
        }
        file.write_text(json.dumps(config))
        options = [f"--config.file={file}", f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={self.url[7:]}"]
        self._log = (folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(["prometheus", *options], stdout=self._log, stderr=self._log)

    def query(self, expression: str) -> list[Any]:
        """Return the result of a query."""
        asked = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{asked}", timeout=LIMIT) as answer:
            result: list[Any] = json.load(answer)["data"]["result"]
        return result

    def has(self, expression: str) -> bool:
        """Return whether Prometheus runs, and a query has a result."""
        try:
            return bool(self.query(expression))
        except OSError:
            return False

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(LIMIT)
        self._log.close()


@pytest.fixture
def prometheus(config_file: Path) -> Iterator[Prometheus]:
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is missing: install Debian's package prometheus")
    with up(config_file):
        until(lambda: reconciled(config_file))
        log = config_file.with_suffix(".log").read_text()
        found = re.search(r"metrics at http://([^/]+)/", log)
        assert found is not None
        server = Prometheus(config_file.parent, found[1])
        try:
            until(lambda: server.has("frontage_phase"))
            time.sleep(3)  # a rate needs two scrapes
            yield server
        finally:
            server.stop()


def test_panels_and_alerts_with_a_real_controller(prometheus: Prometheus, config_file: Path) -> None:
    empty = set()
    for title, expression in QUERIES:
        for variable, value in (("$device", ".*"), ("$vip", ".*"), ("$__rate_interval", "10s")):
            expression = expression.replace(variable, value)
        if not prometheus.query(expression):
            empty.add(title)
    assert empty <= WITHOUT_DATA, empty - WITHOUT_DATA
    # All servers of a VIP drain: the alert is pending, then firing.
    for name in ("web1", "web2", "web3"):
        command("drain", name, "-c", str(config_file))
    until(lambda: prometheus.has('ALERTS{alertname="FrontageVipWithoutServers",vip="shop",alertstate="firing"}'))
    command("drain", "web1", "--undo", "-c", str(config_file))
    until(lambda: not prometheus.query('ALERTS{alertname="FrontageVipWithoutServers"}'))


def test_panels_do_not_overlap() -> None:
    cells = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        own = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not own & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        cells |= own
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
