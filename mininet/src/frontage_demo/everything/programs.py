# SPDX-License-Identifier: Apache-2.0
"""Finds the programs of the testbed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields

from frontage_demo.artemis import programs
from frontage_demo.artemis.site import Programs
from frontage_testbed.datacentre import settings
from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.datacentre.deployment import find as find_deployment

from .site import AllPrograms


def find(env: Mapping[str, str] = os.environ) -> AllPrograms:
    """Find all programs. Raises DeploymentError with what is missing and how to get it."""
    found, common = find_deployment(settings.Settings(), env), programs.find(env)
    preload = found.h3_client.with_name("libartemis_preload.so")
    if not preload.exists():
        raise DeploymentError(f"missing files: {preload}: run `make setup`")
    shared = {field.name: getattr(common, field.name) for field in fields(Programs)}
    return AllPrograms(**shared, real_server=found.real_server, page_client=found.h3_client, preload=preload)
