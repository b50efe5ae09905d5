"""What the service stores: events, projects, tokens, snapshots and the like, in SQLite or PostgreSQL.

`schema` has the tables, `database` opens them, `records` has what the functions return. The functions
take a connection of SQLAlchemy first; transactions are the caller's, by `Database.begin` and
`Database.connect`.
"""
