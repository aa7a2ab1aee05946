"""Draws from a posterior: states of a chain, or chains of their own on frozen structures."""

from sglb.posterior.states import reason_against_draws, virtual_states, warn_if_not_draws

__all__ = ["reason_against_draws", "virtual_states", "warn_if_not_draws"]
