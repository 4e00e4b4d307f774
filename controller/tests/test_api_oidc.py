# SPDX-License-Identifier: Apache-2.0
"""Users of an OpenID Connect provider: tokens of oidc-provider, a certified provider, and forged ones."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm

from conftest import ROOT
from frontage.api import oidc
from frontage.api.client import RequestError, remote
from frontage.api.oidc import OidcUsers
from frontage.api.problems import UnauthorizedError
from frontage.config.oidc import Oidc
from live import LIMIT, installed_service

MODULES = ROOT / "build" / "oidc"
PROVIDER = Path(__file__).with_name("oidc") / "provider.mjs"


class Provider:
    """A running provider. Its keys change with `rotate`."""

    def __init__(self, folder: Path, node: str):
        # Reserves the port, also between two processes of the provider.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port = self._reserved.getsockname()[1]
        self.issuer = f"http://127.0.0.1:{self.port}"
        self._keys = folder / "jwks.json"
        self._node = node
        self._process: subprocess.Popen[bytes] | None = None
        self.keys: list[tuple[str, ec.EllipticCurvePrivateKey]] = []
        self.rotate("first")

    def rotate(self, key_id: str) -> None:
        """Sign with a new key only."""
        self.stop()
        key = ec.generate_private_key(ec.SECP256R1())
        self.keys.append((key_id, key))
        jwk = ECAlgorithm.to_jwk(key, as_dict=True) | {"kid": key_id, "use": "sig", "alg": "ES256"}
        self._keys.write_text(json.dumps({"keys": [jwk]}))
        self.start()

    def start(self) -> None:
        command = [self._node, str(PROVIDER), str(self.port), str(self._keys), str(MODULES)]
        # The command `node` of the virtual environment starts another process, so `stop` ends the whole session.
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def stop(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.stop()
        self._reserved.close()

    def token(self, role: str, audience: str = "frontage") -> str:
        """Return an access token, which is valid for three seconds."""
        answer = httpx.post(
            f"{self.issuer}/token",
            data={"grant_type": "client_credentials", "scope": "api"},
            auth=(f"{role}-of-{audience}", "secret"),
            timeout=LIMIT,
        )
        return str(answer.raise_for_status().json()["access_token"])

    def forged(self, **changes: Any) -> str:
        """Return a token that the provider has not issued, but signed with its key."""
        key_id, key = self.keys[-1]
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": "frontage", "sub": "alice", "iat": now, "exp": now + 60, "frontage_role": "admin"}
        return jwt.encode(claims | changes, key, algorithm="ES256", headers={"kid": key_id})


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    node = shutil.which("node", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if node is None or not (MODULES / "node_modules" / "oidc-provider").exists():
        pytest.skip("no OpenID Connect provider: run `make build/stamps/oidc`")
    provider = Provider(tmp_path, node)
    yield provider
    provider.close()


def users(provider: Provider, **more: Any) -> OidcUsers:
    return OidcUsers(Oidc(issuer=provider.issuer, audience="frontage", clock_skew=0, **more))


def refused(found: OidcUsers, token: str) -> str:
    with pytest.raises(UnauthorizedError) as caught:
        found.caller(token, "192.0.2.1")
    return str(caught.value)


async def test_tokens_of_a_provider_have_roles(provider: Provider, config_file: Path) -> None:
    more = f"\napi:\n  listen: 127.0.0.1:0\n  oidc: {{ issuer: '{provider.issuer}', audience: frontage, algorithms: [ES256] }}\n"
    config_file.write_text(config_file.read_text() + more)
    async with installed_service(config_file) as service:
        address = service.api.address
        assert address is not None

        async def send(role: str, *request: Any) -> Any:
            token = await asyncio.to_thread(provider.token, role)
            async with remote(f"http://127.0.0.1:{address[1]}", LIMIT, token) as client:
                return (await client.send(*request)).body

        drain = ("PATCH", "/servers/web2", {"state": "draining"})
        assert (await send("viewer", "GET", "/status"))["controller"]["phase"] == "installed"
        for role, status in (("viewer", 403), ("guest", 401)):
            with pytest.raises(RequestError) as caught:
                await send(role, *drain)
            assert caught.value.status == status
        assert (await send("operator", *drain))["state"] == "succeeded"
        change = (await send("viewer", "GET", "/history?limit=1"))[0]
        assert (change["author"], change["origin"]) == ("oidc:operator-of-frontage", "127.0.0.1")


def test_other_tokens_are_refused(provider: Provider) -> None:
    found = users(provider)
    assert found.caller(provider.forged(), "192.0.2.1").author.name == "oidc:alice"
    now = int(time.time())
    assert "Audience doesn't match" in refused(found, provider.token("admin", "other"))
    assert "Signature has expired" in refused(found, provider.forged(exp=now - 1))
    assert "not yet valid" in refused(found, provider.forged(iat=now + 60))
    assert "not yet valid" in refused(found, provider.forged(nbf=now + 60))
    assert "Invalid issuer" in refused(found, provider.forged(iss="https://other.example"))
    assert "has no role" in refused(found, provider.forged(frontage_role="root"))
    assert "missing claim 'sub'" in refused(found, provider.forged(sub=""))
    key_id, _ = provider.keys[-1]
    other = jwt.encode({"sub": "alice"}, ec.generate_private_key(ec.SECP256R1()), "ES256", {"kid": key_id})
    assert "Signature verification failed" in refused(found, other)
    # The algorithms of a forger: none, and HMAC with the public key.
    unsigned = jwt.encode({"sub": "alice"}, None, algorithm="none")
    assert "the algorithm 'none' is not permitted" in refused(found, unsigned)
    symmetric = jwt.encode({"sub": "alice"}, base64.b64encode(b"k" * 64).decode(), "HS256", {"kid": key_id})
    assert "the algorithm 'HS256' is not permitted" in refused(found, symmetric)
    wrong_kind = jwt.encode({"sub": "alice"}, rsa.generate_private_key(65537, 2048), "RS256", {"kid": key_id})
    assert "invalid token" in refused(found, wrong_kind)
    assert "invalid token" in refused(found, "a.b.c")


def test_clock_skew_is_tolerated(provider: Provider) -> None:
    late = provider.forged(exp=int(time.time()) - 10)
    assert "expired" in refused(users(provider), late)
    tolerant = OidcUsers(Oidc(issuer=provider.issuer, audience="frontage", clock_skew=60))
    assert tolerant.caller(late, "192.0.2.1").author.name == "oidc:alice"


def test_roles_can_come_from_groups(provider: Provider) -> None:
    found = users(provider, role_claim="groups", roles={"noc": "operator", "all": "viewer"}, subject_claim="email")
    token = provider.forged(groups=["all", "noc", "others"], email="alice@example.org")
    caller = found.caller(token, "192.0.2.1")
    assert (caller.author.name, caller.role) == ("oidc:alice@example.org", "operator")


def test_rotated_keys_are_fetched_and_old_ones_end(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "FETCH_INTERVAL", 0.0)
    found = users(provider)
    old = provider.forged()
    found.caller(old, "192.0.2.1")
    provider.rotate("second")
    assert found.caller(provider.token("viewer"), "192.0.2.1").role == "viewer"
    assert "unknown key 'first'" in refused(found, old)
    # Known keys are enough while the provider is down.
    provider.stop()
    assert found.caller(provider.forged(), "192.0.2.1").role == "admin"
    assert "cannot fetch keys" in refused(found, old)


def test_unknown_keys_lead_to_few_requests(provider: Provider) -> None:
    found = users(provider)
    found.caller(provider.forged(), "192.0.2.1")
    fetches = found.keys.fetches
    for number in range(50):
        token = jwt.encode({"sub": "x"}, provider.keys[-1][1], "ES256", {"kid": f"unknown{number}"})
        assert "unknown key" in refused(found, token)
    assert found.keys.fetches == fetches
