"""The P4Runtime controller of Frontage."""
