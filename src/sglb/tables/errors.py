"""The error of all table files."""


class TableError(ValueError):
    """A table file, or a column of it, cannot be used as asked."""
