# SPDX-License-Identifier: Apache-2.0
"""Demos on the testbeds of `frontage_testbed`: `python -m frontage_demo` and its subpackages."""
