"""A page of the docs with a place for results between two marks."""

from sglb.files import whole_file


def fill(path, title, begin, end, text):
    """Put `text` between the marks of the page; a page that is not there is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page = path.read_text() if path.exists() else f"# {title}\n\n{begin}\n{end}\n"
    if begin not in page or end not in page:
        raise ValueError(f"{path} has no marks {begin} and {end} to write between")
    head, rest = page.split(begin, 1)
    tail = rest.split(end, 1)[1]
    with whole_file(path) as draft:
        draft.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}")
