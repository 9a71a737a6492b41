"""Fixtures of all tests."""

pytest_plugins = ["db_fixtures", "loading_fixtures"]
