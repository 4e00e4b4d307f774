"""``python -m frontage``."""

from frontage.cli import main

main()
