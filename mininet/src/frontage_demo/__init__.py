"""Demos on the testbeds of `frontage_testbed`: `python -m frontage_demo` and its subpackages."""
