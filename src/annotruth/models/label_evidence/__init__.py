"""What single labels say about reliability, and fits of parts of annotators' labels."""

from annotruth.models.label_evidence.evidence import LabelEvidence
from annotruth.models.label_evidence.parts import PartedFit, Parts

__all__ = ["LabelEvidence", "PartedFit", "Parts"]
