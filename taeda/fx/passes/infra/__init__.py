"""Passes and their manager."""
