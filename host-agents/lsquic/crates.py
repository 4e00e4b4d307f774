# SPDX-License-Identifier: Apache-2.0
"""Print the folders of the two crates as Make variables, from the output of `cargo metadata`."""

import json
import sys
from pathlib import Path

NAMES = {"bun_boringssl_sys": "BORINGSSL_CRATE", "bun_lsquic_sys": "LSQUIC_CRATE"}

for package in json.loads(Path(sys.argv[1]).read_text())["packages"]:
    if variable := NAMES.get(package["name"]):
        print(f"{variable} := {Path(package['manifest_path']).parent}")
