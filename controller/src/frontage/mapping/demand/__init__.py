"""Demand as the switches count it, and service replicas placed by it (Auspice, section 1.2; docs/demand.md)."""
