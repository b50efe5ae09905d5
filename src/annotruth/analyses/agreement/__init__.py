"""How far annotators agree beyond chance."""

from annotruth.analyses.agreement.table import Agreement, agreement, agreement_of

__all__ = ["Agreement", "agreement", "agreement_of"]
