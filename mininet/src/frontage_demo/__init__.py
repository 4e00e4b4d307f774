"""A public-facing data centre in network namespaces, and the demo that loads it."""
