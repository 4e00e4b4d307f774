# SPDX-License-Identifier: Apache-2.0
"""QDSR's experiments (ATC 2024) with delays and losses: balancer, real servers and client over softswitch's links."""
