# SPDX-License-Identifier: Apache-2.0
"""One connection through everything: all five systems at two sites with two switches each."""
