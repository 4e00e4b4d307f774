"""Computation of the end-user mapping: from round trips to regions of clients and their best sites."""
