# SPDX-License-Identifier: Apache-2.0
"""The announcement of VIPs and cookie prefixes by BGP, through FRR."""
