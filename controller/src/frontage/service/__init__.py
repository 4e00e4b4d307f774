# SPDX-License-Identifier: Apache-2.0
"""The long-running controller and what it serves: control socket, status and metrics."""
