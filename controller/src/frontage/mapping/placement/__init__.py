"""Demand-aware placement (Auspice, section 1.2.1): how many replicas a record has, and at which sites. See docs/placement.md."""
