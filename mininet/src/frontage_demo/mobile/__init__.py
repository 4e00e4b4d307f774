# SPDX-License-Identifier: Apache-2.0
"""Mobile services: connections of unmodified programs to a host whose address changes, with real record servers."""
