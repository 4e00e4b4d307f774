# SPDX-License-Identifier: Apache-2.0
"""The switch state: what the configuration requires, what is installed, and how to get from one to the other."""
