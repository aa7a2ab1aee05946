import pytest

from sglb.experiments.page import PageReport, bar, check_page, console, write_section

PAGE = "# Title\n\n<!-- one -->\nold\n<!-- end of one -->\n\n<!-- two -->\n<!-- end of two -->\n"


def test_text_goes_between_its_marks_and_nowhere_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    write_section(page, "one", "new")
    write_section(page, "one", "newer")
    write_section(page, "two", "more")
    assert page.read_text() == (
        "# Title\n\n<!-- one -->\n\nnewer\n\n<!-- end of one -->\n\n"
        "<!-- two -->\n\nmore\n\n<!-- end of two -->\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "<!-- one -->",
        "<!-- end of one -->\n<!-- one -->",
        "<!-- one -->\n<!-- one -->\n<!-- end of one -->",
    ],
)
def test_a_page_without_the_marks_is_rejected_and_left_alone(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="no marks <!-- one --> and <!-- end of one -->"):
        check_page(page, "one")
    with pytest.raises(ValueError, match="no marks"):
        write_section(page, "one", "new")
    assert page.read_text() == text


def test_a_missing_page_is_rejected(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such page"):
        check_page(tmp_path / "page.md", "one")


def test_a_report_is_the_same_on_a_terminal_and_in_markdown(capsys):
    report = PageReport()
    report.heading("A heading")
    report.table(["name", "value"], [["first", "**1**"], ["second", "2"]])
    report.text("A line.")
    assert report.markdown() == (
        "### A heading\n\n| name | value |\n|---|--:|\n| first | **1** |\n| second | 2 |\n\nA line."
    )
    report.print(console())
    printed = capsys.readouterr().out
    for words in ("A heading", "first", "second", "A line."):
        assert words in printed
    assert "**" not in printed


def test_a_row_that_does_not_fit_its_table_is_rejected():
    with pytest.raises(ValueError, match="a row must have 2 cells"):
        PageReport().table(["a", "b"], [["1", "2"], ["3"]])


def test_the_bar_takes_numbers():
    with bar("work", 3) as progress:
        progress(1)
        progress(3)
