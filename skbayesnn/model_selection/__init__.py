"""Selection and averaging of models by their evidence."""

from skbayesnn.model_selection._comparison import AllData, ComparisonTable, compare, evidence_score
from skbayesnn.model_selection._search import EvidenceSearch

__all__ = ["AllData", "ComparisonTable", "EvidenceSearch", "compare", "evidence_score"]
