# SPDX-License-Identifier: Apache-2.0
"""QuicSocks with the paper's LTE figures: a client far from its resolver, with and without a proxy beside the resolver."""
