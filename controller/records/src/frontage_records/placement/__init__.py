# SPDX-License-Identifier: Apache-2.0
"""Placement of records by demand (Auspice, section 1.2): servers count requests, and the leading controller moves records."""
