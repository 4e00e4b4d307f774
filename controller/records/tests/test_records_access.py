# SPDX-License-Identifier: Apache-2.0
"""Access control over HTTP: bearer tokens and certificates."""

from __future__ import annotations

import re
import ssl
import subprocess
from pathlib import Path

import aiohttp
import pytest
from typer.testing import CliRunner

from conftest import EXAMPLE
from frontage import cli
from frontage.config import ConfigError, loads
from frontage.tokens import generate
from frontage_records import embedded
from frontage_records.client import RecordClient
from frontage_records.errors import AuthenticationError, EngineError, ForbiddenError, RecordError
from frontage_records.server import Server
from frontage_records.tokens import Permission, Tokens


async def served(folder: Path, more: str) -> Server:
    text = f"{EXAMPLE.read_text(encoding='utf-8')}\nrecords:\n  listen: 127.0.0.1:0\n  store: sqlite:///{folder}/records.db\n{more}"
    config = loads(text, EXAMPLE)
    assert config.records is not None
    if config.records.file is not None and not config.records.file.exists():
        embedded.create(config.records.file)
    return await Server.start(config, config.records)


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, str]:
    drawn = {may.value: generate(f"the-{may}-one", may) for may in Permission}
    (tmp_path / "tokens.toml").write_text("\n".join(entry for _, entry in drawn.values()))
    return {may: token for may, (token, _) in drawn.items()}


async def test_token_permissions_are_enforced(tmp_path: Path, tokens: dict[str, str]) -> None:
    server = await served(tmp_path, f"  tokens: {tmp_path}/tokens.toml\n")
    url = "http://{}:{}".format(*server.address)
    allowed = {"read": 1, "write": 2, "place": 3}
    try:
        async with RecordClient(url, token=tokens["place"]) as client:
            await client.put("guid", {"n": 1})
        for may, most in allowed.items():
            async with RecordClient(url, token=tokens[may]) as client:
                for need, operation in ((1, client.get("guid")), (2, client.put("guid", {})), (3, client.place("guid", [1]))):
                    if need <= most:
                        await operation
                        continue
                    with pytest.raises(ForbiddenError, match=f"the token permits {may}: this request needs"):
                        await operation
        for token in (None, "unknown", tokens["place"][:-1]):
            async with RecordClient(url, token=token) as client:
                for operation in (client.get("guid"), client.delete("guid"), client.place("guid", [1])):
                    with pytest.raises(AuthenticationError):
                        await operation
                with pytest.raises(AuthenticationError):
                    await anext(client.subscribe("guid"))
        async with RecordClient(url, token=tokens["read"]) as client:
            assert (await client.get("guid")).value == {}, "what was refused has changed nothing"
    finally:
        await server.close()


async def test_refusals_have_challenge_headers(tmp_path: Path, tokens: dict[str, str]) -> None:
    """See RFC 6750, section 3."""
    server = await served(tmp_path, f"  tokens: {tmp_path}/tokens.toml\n")
    url = "http://{}:{}/records/guid".format(*server.address)
    cases = {
        None: (401, 'Bearer realm="records"'),
        "Basic Zm9vOmJhcg==": (401, 'Bearer realm="records", error="invalid_token"'),
        "Bearer": (401, 'Bearer realm="records", error="invalid_token"'),
        f"Bearer {tokens['read']}": (403, 'Bearer realm="records", error="insufficient_scope"'),
    }
    try:
        async with aiohttp.ClientSession() as curl:
            for header, expected in cases.items():
                headers = {} if header is None else {"Authorization": header}
                async with curl.put(url, data=b"{}", headers=headers) as answer:
                    assert (answer.status, answer.headers["WWW-Authenticate"]) == expected
            async with curl.get(url.replace("records/guid", "metrics")) as answer:
                assert answer.status == 401
            headers = {"Authorization": f"bearer {tokens['read']}"}
            async with curl.get(url.replace("records/guid", "metrics"), headers=headers) as answer:
                counted = await answer.text()
    finally:
        await server.close()
    assert 'frontage_records_requests_total{method="PUT",result="unauthorized"} 3.0' in counted
    assert 'frontage_records_requests_total{method="PUT",result="forbidden"} 1.0' in counted


@pytest.mark.parametrize(
    "text",
    [
        "[[tokens",
        "tokens = 3",
        "[[tokens]]\nname = 'a'\nmay = 'read'\n",
        f"[[tokens]]\nname = 'a'\nmay = 'everything'\nsha256 = '{'0' * 64}'\n",
        "[[tokens]]\nname = 'a'\nmay = 'read'\nsha256 = 'secret'\n",
        f"[[tokens]]\nname = 'a'\nmay = 'read'\nsha256 = '{'0' * 64}'\n" * 2,
    ],
)
def test_invalid_token_files_are_rejected(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(text)
    with pytest.raises(EngineError, match=re.escape(str(file))):
        Tokens.load(file)


async def test_missing_token_file_is_reported_before_serving(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"missing\.toml: cannot read tokens"):
        await served(tmp_path, f"  tokens: {tmp_path}/missing.toml\n")


def test_tokens_without_tls_need_loopback_address() -> None:
    text = f"{EXAMPLE.read_text(encoding='utf-8')}\nrecords:\n  listen: 0.0.0.0:8480\n  tokens: tokens.toml\n"
    with pytest.raises(ConfigError, match="clients would send tokens unencrypted"):
        loads(text, EXAMPLE)


def test_token_command_generates_valid_token(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli.app, ["records", "token", "web", "--may", "write"])
    assert done.exit_code == 0
    (tmp_path / "tokens.toml").write_text(done.stdout)
    token = done.stdout.splitlines()[0].removeprefix("# Authorization: ")
    known = Tokens.load(tmp_path / "tokens.toml")
    known.check(token, Permission.WRITE)
    with pytest.raises(ForbiddenError):
        known.check(token, Permission.PLACE)
    assert CliRunner().invoke(cli.app, ["records", "token", 'we"b']).exit_code == 1


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    files = folder / f"{name}.pem", folder / f"{name}-key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    return files


async def test_client_certificates_are_required_if_configured(tmp_path: Path) -> None:
    own, client, other = (certificate(tmp_path, name) for name in ("server", "client", "other"))
    tls = f"  tls: {{ certificate: {own[0]}, key: {own[1]}, clients: {client[0]} }}\n"
    server = await served(tmp_path, tls)
    url = "https://{}:{}".format(*server.address)
    try:
        for files in (client, None, other):
            context = ssl.create_default_context(cafile=own[0])
            if files is not None:
                context.load_cert_chain(*files)
            async with RecordClient(url, tls=context) as one:
                if files is client:
                    assert (await one.put("guid", {"n": 1})).applied
                    continue
                # With TLS 1.3 the server rejects the client after the handshake, so the outcome of a write is unknown.
                with pytest.raises(RecordError):
                    await one.put("guid", {"n": 2})
        context = ssl.create_default_context(cafile=own[0])
        context.load_cert_chain(*client)
        async with RecordClient(url, tls=context) as one:
            assert (await one.get("guid")).value == {"n": 1}
    finally:
        await server.close()


async def test_invalid_certificates_are_reported(tmp_path: Path) -> None:
    good = certificate(tmp_path, "server")
    bad = tmp_path / "bad.pem"
    bad.write_text("hello")
    for tls in (f"certificate: {bad}, key: {good[1]}", f"certificate: {good[0]}, key: {good[1]}, clients: {bad}"):
        with pytest.raises(EngineError, match=re.escape(str(bad))):
            await served(tmp_path, f"  tls: {{ {tls} }}\n")
