"""Fixtures of all tests."""

pytest_plugins = ["loading_fixtures"]
