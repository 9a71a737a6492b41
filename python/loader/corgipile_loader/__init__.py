"""Reads files and tables in CorgiPile's order: the native part of the Python package corgipile."""
