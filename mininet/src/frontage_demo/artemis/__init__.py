"""Artemis over a world of sites whose distances are measured ones; `python -m frontage_demo.artemis`."""
