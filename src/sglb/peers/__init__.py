"""Error bars for models of other libraries, from the leaves that their rows fall into.

A posterior of frozen trees needs the leaves of rows and their raw scores only (`sglb.posterior`),
and every library of tree ensembles has both. A library is a file with a function `read`, and a line
of `reading.py`; it is imported by nobody but the user who made the model.
"""

from sglb.peers.source import posterior_of

__all__ = ["posterior_of"]
