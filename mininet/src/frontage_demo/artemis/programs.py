# SPDX-License-Identifier: Apache-2.0
"""Finds the programs of Artemis' testbed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from frontage_testbed.datacentre import settings
from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.datacentre.deployment import find as find_deployment
from frontage_testbed.nameservers import PACKAGES
from frontage_testbed.programs import missing_packages

from .site import Programs


def find(env: Mapping[str, str] = os.environ) -> Programs:
    """Find all programs. Raises DeploymentError with what is missing and how to get it."""
    found = find_deployment(settings.Settings(), env)
    client = Path(env.get("FRONTAGE_GET") or found.h3_client.with_name("frontage-get"))
    dispatcher = Path(env.get("FRONTAGE_DISPATCHER") or found.h3_client.with_name("frontage-dispatcher"))
    compiler = Path(env.get("FRONTAGE_P4C") or found.switch.with_name("softswitch-p4c"))
    if absent := [str(program) for program in (client, dispatcher, compiler) if not program.exists()]:
        raise DeploymentError(f"missing files: {', '.join(absent)}: run `make setup`")
    if missing := missing_packages(PACKAGES, env):
        raise DeploymentError(f"missing Debian packages: apt-get install {' '.join(missing)}")
    return Programs(
        switch=found.switch,
        compiler=compiler,
        controller=found.controller,
        server=found.quic_agent,
        client=client,
        dispatcher=dispatcher,
        p4info=found.p4 / "frontage.p4info.txtpb",
        json_file=found.p4 / "frontage.json",
    )
