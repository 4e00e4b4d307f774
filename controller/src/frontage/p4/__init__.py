# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime side of the controller: the program's interface, entries and sessions."""
