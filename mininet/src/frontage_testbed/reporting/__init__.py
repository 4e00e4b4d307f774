"""Plots, tables and pages of measurements."""
