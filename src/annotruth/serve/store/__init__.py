"""What the service stores: events, projects, tokens, snapshots and the like, in SQLite or PostgreSQL.

`tables` has the tables and their rows, `rows` finds and changes them, `database` opens them. The
functions take a connection of SQLAlchemy first; transactions are the caller's, by `Database.begin` and
`Database.connect`.
"""
