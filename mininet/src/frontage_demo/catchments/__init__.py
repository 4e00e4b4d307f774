# SPDX-License-Identifier: Apache-2.0
"""Artemis sites in the emulated Internet: catchments of their service prefix by BGP (docs/catchments.md)."""
