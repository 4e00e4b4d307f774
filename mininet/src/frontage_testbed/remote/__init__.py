# SPDX-License-Identifier: Apache-2.0
"""A data centre with servers behind tunnels."""
