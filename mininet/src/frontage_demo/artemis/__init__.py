"""Artemis over a testbed of sites whose distances are measured ones; `python -m frontage_demo.artemis`."""
