"""The error raised for table files."""


class TableError(ValueError):
    """A table file, or a column of it, cannot be used as asked."""
