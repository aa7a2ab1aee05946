"""What can be wrong with a table file."""


class TableError(ValueError):
    """A table file, or a column of it, is not what was asked for."""
