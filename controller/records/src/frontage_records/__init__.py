"""The record store of Auspice: JSON documents by GUID, with a consistency that each record chooses (docs/records.md)."""
