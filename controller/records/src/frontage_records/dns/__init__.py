# SPDX-License-Identifier: Apache-2.0
"""Records as a DNS zone for ordinary resolvers. See docs/records.md."""
