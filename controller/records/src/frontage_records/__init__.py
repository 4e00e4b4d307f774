# SPDX-License-Identifier: Apache-2.0
"""The record store of Auspice: JSON documents by GUID, each with its own consistency model (docs/records.md)."""
