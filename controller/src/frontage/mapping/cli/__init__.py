"""The commands ``frontage mapping`` and ``frontage placement``."""
