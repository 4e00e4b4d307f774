# SPDX-License-Identifier: Apache-2.0
"""The testbed of a fleet: several edge switches between one upstream router and one rack of servers."""
