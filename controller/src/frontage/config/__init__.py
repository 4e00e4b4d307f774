# SPDX-License-Identifier: Apache-2.0
"""The configuration file: schema, loading, checks and edits."""

from frontage.config.errors import ConfigError
from frontage.config.load import contradictions, load, loads
from frontage.config.schema import Config

__all__ = ["Config", "ConfigError", "contradictions", "load", "loads"]
