"""How good the uncertainty of sglb is, beside that of other libraries.

Four parts: `regression` (distributions of y), `classes` (posterior of classifiers, rows of another
domain), `known` (functions that are known) and `times`.
"""
