"""The database that all controllers of the mapping share."""
