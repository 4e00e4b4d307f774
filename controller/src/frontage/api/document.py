# SPDX-License-Identifier: Apache-2.0
"""Prints the OpenAPI document: `python -m frontage.api.document`."""

from __future__ import annotations

import json
from pathlib import Path

from frontage.api import access
from frontage.api.app import Shared, application
from frontage.api.offline import Offline

if __name__ == "__main__":
    # The document does not depend on the configuration, so the file need not exist.
    print(json.dumps(application(Shared(Offline(Path("frontage.yaml"))), access.local).openapi(), indent=2))
