# SPDX-License-Identifier: Apache-2.0
"""Demand: requests per service and region, as the switches count them and load reports carry them (Auspice, section 1.2)."""
