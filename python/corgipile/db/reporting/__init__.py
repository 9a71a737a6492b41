"""The report on models: what is asked of the database, what is computed of it, and the page."""
