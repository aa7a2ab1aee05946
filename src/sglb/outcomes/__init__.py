"""How outcomes are distributed about their predictions, learned from rows out of fold.

Residuals of training rows are too small: a chain has fitted them. Here every row is predicted by a
chain that was not trained on it (`folds`), and what is learned from these residuals holds for new
rows.
"""

from sglb.outcomes.learning import learn_outcomes
from sglb.outcomes.outcome_model import PARAMETERS, OutcomeModel

__all__ = ["PARAMETERS", "OutcomeModel", "learn_outcomes"]
