# SPDX-License-Identifier: Apache-2.0
"""Sites and hosts at measured distances, connected by one switch that delays packets."""
