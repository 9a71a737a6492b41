"""Fixtures of all tests."""

from db_fixtures import conn, database, interrupts, server

__all__ = ["conn", "database", "interrupts", "server"]
