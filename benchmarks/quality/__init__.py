"""How well the libraries predict with their default settings: `python -m benchmarks.quality`.

A table and a seed make a split (`split`), a library learns it in a process of its own (`worker`),
what it scores (`scores`) is kept as it comes (`results`), compared (`comparison`,
`significance`, `goals`) and shown (`report`, `tables`, `figures`).
"""
