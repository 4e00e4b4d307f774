"""Records as a DNS zone for ordinary resolvers. See docs/records.md."""
