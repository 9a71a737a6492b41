"""Fixtures of all tests."""

from db_fixtures import conn, database, server

__all__ = ["conn", "database", "server"]
