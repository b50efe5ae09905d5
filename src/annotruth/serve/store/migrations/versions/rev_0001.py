"""The first tables: new databases are created with those of the latest revision instead."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing: no database has an older schema."""
