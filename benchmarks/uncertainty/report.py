"""Results -> the Markdown that is printed."""


def markdown(results):
    """A line for each result."""
    return "\n".join(f"- {' '.join(map(str, job))}: {row}" for job, row in results.done.items())
