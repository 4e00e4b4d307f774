# SPDX-License-Identifier: Apache-2.0
"""The running parts of the mapping: the computing loop, placement epochs, and the writing of dispatchers and the switch."""
