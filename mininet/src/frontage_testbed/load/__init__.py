"""Workloads, the clients that replay them, and the outcome of each request."""
