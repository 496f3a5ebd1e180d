"""Comparing tables with their sources, and what repairs them."""
