"""The database of one audit: SQLite by default, PostgreSQL by URL. Votes are only ever added."""
