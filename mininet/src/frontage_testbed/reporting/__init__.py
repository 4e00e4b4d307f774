# SPDX-License-Identifier: Apache-2.0
"""Plots, tables and pages of measurements."""
