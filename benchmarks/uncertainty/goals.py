"""Minus log likelihood on UCI sets: what we aim at, and the best published for trees.

Published are figures with the protocol of this benchmark (Gal and Ghahramani's splits, normal
distributions): NGBoost (Duan et al., 2020), RoNGBa (Ren et al., 2019), WGBoost (2024).
"""

GOALS = {
    "uci_boston": 2.30,
    "uci_concrete": 2.65,
    "uci_energy": 0.15,
    "uci_kin8nm": -1.08,
    "uci_naval": -6.0,
    "uci_power": 2.40,
    "uci_protein": 2.50,
    "uci_wine_red": 0.81,
    "uci_yacht": -0.5,
}
PUBLISHED = {
    "uci_boston": (2.43, "NGBoost"),
    "uci_concrete": (2.83, "WGBoost"),
    "uci_energy": (0.53, "WGBoost"),
    "uci_kin8nm": (-0.60, "RoNGBa"),
    "uci_naval": (-5.49, "RoNGBa"),
    "uci_power": (2.60, "WGBoost"),
    "uci_protein": (2.70, "WGBoost"),
    "uci_wine_red": (0.91, "NGBoost"),
    "uci_yacht": (0.16, "WGBoost"),
}
# Splits that a run takes of each set where it is not told.
SPLITS = {
    "uci_boston": 20,
    "uci_concrete": 20,
    "uci_energy": 20,
    "uci_yacht": 20,
    "uci_wine_red": 20,
    "uci_power": 20,
    "uci_kin8nm": 20,
    "uci_naval": 20,
    "uci_protein": 5,
    "california_housing": 2,
    "uci_kin40k": 1,
    "uci_tamielectric": 1,
    "uci_keggdirected": 1,
    "diamonds": 1,
}
