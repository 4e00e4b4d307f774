# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime controller of Frontage."""
