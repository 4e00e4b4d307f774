# SPDX-License-Identifier: Apache-2.0
"""``python -m frontage``."""

from frontage.cli import main

main()
