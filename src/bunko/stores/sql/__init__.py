"""Run the queries of a library in SQL that SQLite and PostgreSQL both understand."""
