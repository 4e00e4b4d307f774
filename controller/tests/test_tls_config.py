# SPDX-License-Identifier: Apache-2.0
"""Sections about TLS and identities in the configuration file: paths, and invalid values with their place and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage.api.access import Role
from frontage.client_certificates import ClientCertificates, ClientCertificatesError
from frontage.config import ConfigError, load

ISSUER = "https://login.example"


def with_sections(folder: Path, *, tls: str = "", api: str = "") -> Path:
    text = EXAMPLE.read_text()
    if tls:
        text = text.replace("  device_id: 1\n", f"  device_id: 1\n  tls: {tls}\n", 1)
    file = folder / "site.yaml"
    file.write_text(text + (f"\napi: {api}\n" if api else ""))
    return file


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    tls = "{ authorities: ca.pem, certificate: own.pem, key: own-key.pem }"
    api = "{ certificates: grants.toml, tls: { certificate: a.pem, key: b.pem, clients: ca.pem } }"
    config = load(with_sections(tmp_path, tls=tls, api=api))
    assert config.device.tls is not None
    assert config.device.tls.files == (tmp_path / "ca.pem", tmp_path / "own.pem", tmp_path / "own-key.pem")
    assert config.api is not None
    assert config.api.certificates == tmp_path / "grants.toml"


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"tls": "{ authorities: ca.pem, key: k.pem }"}, "certificate and key must be used together: set both or neither"),
        ({"tls": "{ certificate: a.pem, key: k.pem }"}, "device.tls.authorities"),
        ({"api": "{ listen: '127.0.0.1:0' }"}, "clients cannot authenticate: set tokens, certificates or oidc"),
        ({"api": "{ certificates: c.toml }"}, "certificates requires the authorities of client certificates: set tls.clients"),
        ({"api": "{ oidc: { issuer: 'http://login.example', audience: a } }"}, "use an https URL, because keys come from there"),
        ({"api": f"{{ oidc: {{ issuer: '{ISSUER}', audience: a, algorithms: [HS256] }} }}"}, "api.oidc.algorithms[0]"),
        ({"api": f"{{ oidc: {{ issuer: '{ISSUER}', audience: a, algorithms: [none] }} }}"}, "api.oidc.algorithms[0]"),
        ({"api": f"{{ listen: '0.0.0.0:9480', oidc: {{ issuer: '{ISSUER}', audience: a }} }}"}, "send tokens unencrypted"),
    ],
)
def test_invalid_sections_have_their_place(tmp_path: Path, sections: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(with_sections(tmp_path, **sections))
    assert expected in str(caught.value)
    assert "site.yaml:" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[certificates]]\nname = 'a'\nmay = 'root'\n", "certificate 1 needs `name`, and either `may`"),
        ("[[certificates]]\nname = 'a'\nmay = 'admin'\nserver = 'web1'\n", "certificate 1 needs `name`, and either `may`"),
        (
            "[[certificates]]\nname = 'a'\nmay = 'admin'\n[[certificates]]\nname = 'a'\nserver = 'b'\n",
            "certificate 2 is a duplicate",
        ),
        ("certificates = 3\n", "certificates must be tables"),
        ("[[certificates\n", "cannot read certificates"),
    ],
)
def test_invalid_files_of_grants_name_the_entry(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "grants.toml"
    file.write_text(text)
    with pytest.raises(ClientCertificatesError) as caught:
        ClientCertificates.load(file, Role)
    assert f"{file}: {expected}" in str(caught.value)
