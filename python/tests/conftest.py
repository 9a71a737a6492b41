"""Fixtures of all tests."""

pytest_plugins = ["db_fixtures", "joader_fixtures", "loading_fixtures"]
