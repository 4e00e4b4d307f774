# SPDX-License-Identifier: Apache-2.0
"""Samples of packets, which the switch sends to the controller (`samples.p4`), for collectors of sFlow and INT."""
