# SPDX-License-Identifier: Apache-2.0
"""Workloads, the clients that replay them, and the outcome of each request."""
