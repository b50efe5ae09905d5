"""Logins are rows, which end when somebody logs out."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table of logins."""
    op.create_table(
        "login",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["token"], ["token.id"]),
        sa.PrimaryKeyConstraint("hash"),
    )
