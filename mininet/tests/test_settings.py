# SPDX-License-Identifier: Apache-2.0
"""Settings from the environment: defaults, and errors with the valid values."""

from dataclasses import replace

import pytest

from frontage_testbed.datacentre.settings import (
    BMV2_RATE,
    FRAME,
    POLICIES,
    Settings,
    SettingsError,
    from_environment,
    page_from_environment,
)


def test_empty_environment_gives_defaults() -> None:
    assert from_environment({}) == Settings()
    assert from_environment({"LOAD": "", "TARGET": " "}) == Settings()


def test_all_settings_are_read() -> None:
    settings = from_environment({"DEMO_SECONDS": "5", "LOAD": "0.5", "SEED": "9", "SERVERS": "4", "TARGET": "bmv2"})
    expected = Settings(seconds=5, load=0.5, seed=9, servers=4, target="bmv2", bottleneck_rate=BMV2_RATE, delay=0)
    assert settings == expected


def test_protocol_excludes_unsupported_policies() -> None:
    settings = from_environment({"PROTOCOL": "quic"})
    assert settings == replace(Settings(), protocol="quic", policies=settings.policies)
    assert set(POLICIES) - set(settings.policies) == {"cheetah-ll"}


def test_server_on_lsquic_needs_quic() -> None:
    settings = from_environment({"PROTOCOL": "quic", "SERVER": "lsquic"})
    assert settings.server == "lsquic"
    assert "frontage-lsquic" in settings.terms.servers
    assert from_environment({"PROTOCOL": "quic"}).server == "cclb7"
    with pytest.raises(SettingsError, match=r"SERVER=lsquic is a QUIC server; use it with PROTOCOL=quic"):
        from_environment({"SERVER": "lsquic"})
    with pytest.raises(SettingsError, match=r"use cclb7 or lsquic"):
        from_environment({"PROTOCOL": "quic", "SERVER": "nginx"})


def test_scheduler_runs_beside_fifo_of_the_same_depth() -> None:
    settings = from_environment({"SCHEDULER": "aifo"})
    names = [treatment.name for treatment in settings.treatments]
    assert names[:4] == ["hash", "hash+aifo", "cheetah-rr", "cheetah-rr+aifo"]
    assert len(names) == 2 * len(POLICIES)
    assert settings.bottleneck_packets is not None
    assert 0 <= settings.bottleneck_queue - settings.bottleneck_packets * FRAME < FRAME
    plain = from_environment({"SCHEDULER": "fifo"})
    assert plain == Settings()
    assert [treatment.name for treatment in plain.treatments] == list(POLICIES)
    assert plain.bottleneck_packets is None


def test_aifo_requires_softswitch() -> None:
    with pytest.raises(SettingsError, match=r"SCHEDULER=aifo.*TARGET=softswitch"):
        from_environment({"SCHEDULER": "aifo", "TARGET": "bmv2"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("DEMO_SECONDS", "soon", "not a number"),
        ("DEMO_SECONDS", "0", "1 to 3600"),
        ("DEMO_SECONDS", "nan", "out of range"),
        ("LOAD", "1.5", "0.05 to 0.95"),
        ("LOAD", "-inf", "out of range"),
        ("SEED", "1.5", "whole number"),
        ("SEED", "-1", "out of range"),
        ("SERVERS", "1", "2 to 32"),
        ("SERVERS", "many", "not a number"),
        ("PROTOCOL", "sctp", "tcp or quic"),
        ("SCHEDULER", "sp-pifo", "fifo or aifo"),
        ("TARGET", "tofino", "softswitch or bmv2"),
    ],
)
def test_invalid_values_are_rejected_by_name(name: str, value: str, message: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}.*{message}"):
        from_environment({name: value})


def test_profile_of_tofino_leaves_out_its_policies() -> None:
    settings = from_environment({"TARGET": "tna", "PROFILE": "tofino1quic", "PROTOCOL": "quic"})
    assert settings.policies == ("hash", "cclb4", "cclb4-current", "cclb4-future")
    assert from_environment({"TARGET": "tna"}).program == "tofino2"


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"PROFILE": "tofino1"}, "use it with TARGET=tna"),
        ({"PROFILE": "tofino3", "TARGET": "tna"}, "unknown; use tofino1 or tofino1quic"),
        ({"PROFILE": "tofino1", "TARGET": "tna", "PROTOCOL": "quic"}, "PROTOCOL=quic; use tcp"),
        ({"PROFILE": "tofino1quic", "TARGET": "tna"}, "PROTOCOL=tcp; use quic"),
        ({"PROFILE": "tofino1", "TARGET": "tna", "SCHEDULER": "aifo"}, "SCHEDULER=aifo; use PROFILE=tofino2"),
    ],
)
def test_settings_that_a_profile_does_not_have_are_rejected(env: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        from_environment(env)


def test_demo_with_real_servers_has_its_own_settings() -> None:
    assert page_from_environment({}) is page_from_environment({"QDSR": "0", "LOAD": "0.5"}) is None
    settings = page_from_environment({"QDSR": "1", "SEED": "9", "SERVERS": "3", "LOAD": " "})
    assert settings is not None
    assert (settings.seed, settings.servers, settings.protocol) == (9, 3, "quic")
    # As a proxy, the balancer's own link limits the page.
    assert settings.server_rate < settings.bottleneck_rate / 2


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"QDSR": "yes"}, "QDSR='yes' is unknown; use 0 or 1"),
        ({"QDSR": "1", "SERVERS": "9"}, "SERVERS=9 is out of range; use 2 to 8"),
        ({"QDSR": "1", "SCHEDULER": "aifo", "LOAD": "0.5"}, "cannot be combined with LOAD, SCHEDULER"),
    ],
)
def test_settings_not_available_with_real_servers_are_rejected(env: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        page_from_environment(env)


def test_server_links_share_the_bottleneck_with_headroom() -> None:
    settings = Settings(servers=8, bottleneck_rate=160_000_000, server_headroom=1.25)
    assert settings.server_rate == 25_000_000
