# SPDX-License-Identifier: Apache-2.0
"""The commands ``frontage mapping`` and ``frontage placement``."""
