# SPDX-License-Identifier: Apache-2.0
"""The computation of the end-user mapping: from RTTs to regions of clients and their best sites. No clock, no sockets."""
