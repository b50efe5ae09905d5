"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

CURRENT_LABEL = """
create view current_label as
select seq, project, source, event_id, annotation, item, other_item, annotator, label, started,
    submitted, deleted, received
from (
    select ranked.*, row_number() over (
        partition by ranked.project, item, annotator,
            case when project.kind = 'comparisons' then seq else 0 end
        order by submitted desc, seq desc
    ) as place
    from (
        select event.*, row_number() over (
            partition by project, source, annotation order by submitted desc, seq desc
        ) as rank_in_annotation
        from event
    ) as ranked
    join project on project.id = ranked.project
    where rank_in_annotation = 1 and not deleted
) as living
where place = 1
"""


def upgrade() -> None:
    """Create the tables and the view."""
    op.create_table(
        "project",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("erasures", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "alert",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("seen", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("alert_by_project", "alert", ["project", "id"], unique=False)
    op.create_table(
        "annotator_history",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("n_labels", sa.Integer(), nullable=False),
        sa.Column("reliability", sa.Float(), nullable=True),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("behavior", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("project", "annotator", "version"),
    )
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("project", sa.Integer(), nullable=True),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("seq"),
        sqlite_autoincrement=True,
    )
    op.create_index("audit_by_project", "audit", ["project", "seq"], unique=False)
    op.create_table(
        "connection",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("cursor", sa.JSON(), nullable=False),
        sa.Column("last_contact", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "event",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("annotation", sa.Text(), nullable=False),
        sa.Column("item", sa.Text(), nullable=False),
        sa.Column("other_item", sa.Text(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=True),
        sa.Column("submitted", sa.BigInteger(), nullable=False),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("project", "source", "event_id", name="event_once"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "event_by_annotation", "event", ["project", "source", "annotation"], unique=False
    )
    op.create_index("event_by_annotator", "event", ["project", "annotator"], unique=False)
    op.create_index("event_by_seq", "event", ["project", "seq"], unique=False)
    op.create_index("event_by_slot", "event", ["project", "item", "annotator"], unique=False)
    op.create_table(
        "gold",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("item", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("project", "item"),
    )
    op.create_table(
        "hourly",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("hour", sa.BigInteger(), nullable=False),
        sa.Column("n_labels", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("project", "hour"),
    )
    op.create_table(
        "item_content",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("item", sa.Text(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("project", "item"),
    )
    op.create_table(
        "lease",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("item", sa.Text(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("project", "item", "annotator"),
    )
    op.create_index("lease_by_annotator", "lease", ["project", "annotator"], unique=False)
    op.create_table(
        "snapshot",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("n_labels", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("project", "version"),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Integer(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=True),
        sa.Column("revoked", sa.BigInteger(), nullable=True),
        sa.Column("last_used", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "trait",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("traits", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("project", "annotator"),
    )
    op.create_table(
        "webhook",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("kinds", sa.JSON(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "worker_state",
        sa.Column("project", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"],
            ["project.id"],
        ),
        sa.PrimaryKeyConstraint("project"),
    )
    op.create_table(
        "delivery",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("webhook", sa.Integer(), nullable=False),
        sa.Column("alert", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["alert"], ["alert.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["webhook"], ["webhook.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("webhook", "alert", name="delivery_once"),
    )
    op.create_index("delivery_by_alert", "delivery", ["alert"], unique=False)
    op.create_index("delivery_by_status", "delivery", ["status", "next_attempt"], unique=False)
    op.execute(CURRENT_LABEL)
