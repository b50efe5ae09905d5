"""How far annotators agree beyond chance."""

from annotruth.analyses.agreement.table import AgreementTable, agreement, agreement_of

__all__ = ["AgreementTable", "agreement", "agreement_of"]
