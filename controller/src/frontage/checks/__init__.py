# SPDX-License-Identifier: Apache-2.0
"""Health checks of servers (docs/health.md).

A process of its own, the prober, checks the servers through the switch. The controller starts it, judges its results and marks
failed servers, which then get no new connections.
"""
