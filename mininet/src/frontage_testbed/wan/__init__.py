"""Sites and hosts at measured distances, connected by one switch that delays packets."""
