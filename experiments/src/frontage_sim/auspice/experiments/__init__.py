# SPDX-License-Identifier: Apache-2.0
"""The experiments of Auspice's evaluation, one module each. Every module's ``run`` takes a scenario and returns its rows."""
