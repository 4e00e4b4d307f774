"""End-user mapping (Artemis, section 3.3): which sites are best for a client of a service. See docs/mapping.md."""
