# SPDX-License-Identifier: Apache-2.0
"""Discovery at a real API server of Kubernetes with etcd, by a service account with no more rights than docs/discovery.md names."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from authorities import Authority
from conftest import EXAMPLE, ROOT
from frontage.config import load
from frontage.config.discovery import KubernetesSource
from frontage.discovery.service import Discovery
from live import LIMIT
from test_monitoring import free_port

BUILT = ROOT / "build" / "kube-apiserver"
API_SERVER = os.environ.get("KUBE_APISERVER") or shutil.which("kube-apiserver") or (str(BUILT) if BUILT.exists() else None)
ETCD = os.environ.get("ETCD") or shutil.which("etcd")

pytestmark = pytest.mark.skipif(
    API_SERVER is None or ETCD is None,
    reason="kube-apiserver or etcd is missing: run `make build/kube-apiserver` and `apt-get install etcd-server`",
)

START_LIMIT = 120.0
"""Seconds until the API server is ready, on a busy machine."""
INTERVAL = 3600.0
"""Seconds between queries: each change is noticed by the watch."""
ADMIN = "admin-token"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"


class Kubernetes:
    """An API server with etcd."""

    def __init__(self, folder: Path) -> None:
        assert ETCD is not None
        self._folder = folder
        self._etcd = f"http://127.0.0.1:{free_port()}"
        self._port = free_port()
        self.url = f"https://127.0.0.1:{self._port}"
        authority = Authority(folder)
        self.ca = authority.pem
        self._certificate, self._key = authority.issue("server", "127.0.0.1")
        self._tls = ssl.create_default_context(cafile=str(self.ca))
        peer = f"http://127.0.0.1:{free_port()}"
        words = ["--data-dir", folder / "etcd", "--listen-client-urls", self._etcd, "--advertise-client-urls", self._etcd]
        self._store = self._spawn("etcd", [ETCD, *words, "--listen-peer-urls", peer])
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the API server, and wait until it answers."""
        assert API_SERVER is not None
        tokens = self._folder / "tokens.csv"
        tokens.write_text(f"{ADMIN},admin,1,system:masters\n")
        options = {
            "etcd-servers": self._etcd,
            "bind-address": "127.0.0.1",
            "secure-port": self._port,
            "tls-cert-file": self._certificate,
            "tls-private-key-file": self._key,
            "token-auth-file": tokens,
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": self._certificate,
            "service-account-signing-key-file": self._key,
            "service-cluster-ip-range": "10.96.0.0/24",
        }
        self._server = self._spawn("kube-apiserver", [API_SERVER, *(f"--{name}={value}" for name, value in options.items())])
        deadline = time.monotonic() + START_LIMIT
        while not self._is_ready():
            assert self._server.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.2)

    def stop(self) -> None:
        """Stop the API server, but not etcd."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None

    def close(self) -> None:
        self.stop()
        self._store.kill()
        self._store.wait()

    def log(self) -> str:
        """Return the end of the API server's log."""
        return (self._folder / "kube-apiserver.log").read_text()[-3000:]

    def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Send a request as the administrator."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=LIMIT, context=self._tls) as answer:
            result: dict[str, Any] = json.load(answer)
            return result

    def _is_ready(self) -> bool:
        try:
            request = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {ADMIN}"})
            with urllib.request.urlopen(request, timeout=5, context=self._tls):
                return True
        except OSError:
            return False

    def _spawn(self, name: str, words: list[object]) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(list(map(str, words)), stdout=log, stderr=log, cwd=self._folder)


@pytest.fixture(scope="module")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    found = Kubernetes(tmp_path_factory.mktemp("kubernetes"))
    try:
        found.start()
        found.call("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        yield found
    finally:
        found.close()


def token_of(kubernetes: Kubernetes, account: str, verbs: list[str], folder: Path) -> Path:
    """Create a service account with verbs for EndpointSlices, and return the file of its token."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop"
    kubernetes.call("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": account}})
    rule = {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": verbs}
    kubernetes.call("POST", f"{rbac}/roles", {"metadata": {"name": account}, "rules": [rule]})
    binding = {
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "shop"}],
    }
    kubernetes.call("POST", f"{rbac}/rolebindings", binding)
    path = f"/api/v1/namespaces/shop/serviceaccounts/{account}/token"
    answer = kubernetes.call("POST", path, {"spec": {"expirationSeconds": 3600}})
    file = folder / f"{account}.token"
    file.write_text(answer["status"]["token"])
    return file


def slice_of(name: str, service: str, *addresses: str, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv6" if ":" in addresses[0] else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": ready}, "zone": "b"} for address in addresses],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


def source_of(kubernetes: Kubernetes, service: str, token: Path, interval: float = INTERVAL) -> KubernetesSource:
    return KubernetesSource(
        kind="kubernetes",
        url=kubernetes.url,
        namespace="shop",
        service=service,
        sids=(100, 109),
        interval=interval,
        token_file=token,
        ca_file=kubernetes.ca,
    )


class Followed:
    """The discovery of one VIP."""

    def __init__(self, discovery: Discovery, vip: str) -> None:
        self._discovery, self._vip = discovery, vip

    def addresses(self) -> set[str]:
        """Return the addresses of the active servers."""
        roster = self._discovery.rosters.get(self._vip)
        return {str(server.address) for server in roster.servers(self._vip, None) if server.active} if roster is not None else set()

    def problem(self) -> str | None:
        """Return what is wrong with the source."""
        (description,) = self._discovery.describe()
        problem: str | None = description["error"]
        return problem

    async def until_problem(self) -> str:
        """Wait until the source is wrong, and return how."""
        async with asyncio.timeout(LIMIT):
            while (problem := self.problem()) is None:
                await asyncio.sleep(0.05)
        return problem

    async def until(self, *addresses: str) -> None:
        async with asyncio.timeout(LIMIT):
            while self.addresses() != set(addresses):
                await asyncio.sleep(0.05)


async def changed() -> None:
    """Do nothing: no switch follows the servers."""


@asynccontextmanager
async def following(source: KubernetesSource, folder: Path) -> AsyncIterator[Followed]:
    config = load(EXAMPLE)
    vip = next(vip for vip in config.vips if vip.address.version == 4)
    discovery = Discovery(folder / "frontage.yaml", changed)
    discovery.follow(config.model_copy(update={"vips": (vip.model_copy(update={"discovery": source}),)}))
    try:
        yield Followed(discovery, vip.name)
    finally:
        await discovery.close()


async def test_servers_follow_the_slices_by_watches(kubernetes: Kubernetes, tmp_path: Path) -> None:
    token = token_of(kubernetes, "reader", ["list", "watch"], tmp_path)
    call = kubernetes.call
    call("POST", SLICES, slice_of("web-a", "web", "10.0.0.1", "10.0.0.2"))
    call("POST", SLICES, slice_of("other", "mail", "10.0.0.9"))
    async with following(source_of(kubernetes, "web", token), tmp_path) as followed:
        await followed.until("10.0.0.1", "10.0.0.2")
        call("POST", SLICES, slice_of("web-b", "web", "10.0.0.3"))
        call("POST", SLICES, slice_of("web-6", "web", "2001:db8::1"))
        await followed.until("10.0.0.1", "10.0.0.2", "10.0.0.3")
        call("PUT", f"{SLICES}/web-b", slice_of("web-b", "web", "10.0.0.3", ready=False))
        await followed.until("10.0.0.1", "10.0.0.2")
        call("PUT", f"{SLICES}/web-a", slice_of("web-a", "web", "10.0.0.4"))
        await followed.until("10.0.0.4")
        call("PUT", f"{SLICES}/web-b", slice_of("web-b", "web", "10.0.0.5"))
        call("DELETE", f"{SLICES}/web-a")
        await followed.until("10.0.0.5")
        assert followed.problem() is None


async def test_servers_stay_while_the_api_server_is_away(kubernetes: Kubernetes, tmp_path: Path) -> None:
    token = token_of(kubernetes, "patient", ["list", "watch"], tmp_path)
    kubernetes.call("POST", SLICES, slice_of("cart", "cart", "10.0.1.1"))
    async with following(source_of(kubernetes, "cart", token, interval=1), tmp_path) as followed:
        await followed.until("10.0.1.1")
        await asyncio.to_thread(kubernetes.stop)
        await followed.until_problem()
        assert followed.addresses() == {"10.0.1.1"}
        await asyncio.to_thread(kubernetes.start)
        kubernetes.call("PUT", f"{SLICES}/cart", slice_of("cart", "cart", "10.0.1.2"))
        await followed.until("10.0.1.2")


async def test_account_without_watch_is_served_by_queries(kubernetes: Kubernetes, tmp_path: Path) -> None:
    token = token_of(kubernetes, "lister", ["list"], tmp_path)
    kubernetes.call("POST", SLICES, slice_of("pay", "pay", "10.0.2.1"))
    async with following(source_of(kubernetes, "pay", token, interval=1), tmp_path) as followed:
        await followed.until("10.0.2.1")
        kubernetes.call("PUT", f"{SLICES}/pay", slice_of("pay", "pay", "10.0.2.2"))
        await followed.until("10.0.2.2")


async def test_account_without_rights_is_reported(kubernetes: Kubernetes, tmp_path: Path) -> None:
    token = token_of(kubernetes, "stranger", ["get"], tmp_path)
    async with following(source_of(kubernetes, "web", token), tmp_path) as followed:
        assert "status 403" in await followed.until_problem()
        assert followed.addresses() == set()
    invalid = tmp_path / "invalid.token"
    invalid.write_text("invalid")
    async with following(source_of(kubernetes, "web", invalid), tmp_path) as followed:
        assert "status 401" in await followed.until_problem()
