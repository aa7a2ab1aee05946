"""Text files of every common format give the same table; plain CSV is read as Arrow reads it."""

import csv
import gzip
import io

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglb.tables import Dialect, TableError, TableFile, read_table

PLAIN = "Ort,Preis,Stück,Notiz\nKöln,-1234.5,7,a\nBern,0.25,1200,b\nKöln,,3,a\n"
EXPECTED = {
    "Ort": ["Köln", "Bern", "Köln"],
    "Preis": [-1234.5, 0.25, None],
    "Stück": [7, 1200, 3],
    "Notiz": ["a", "b", "a"],
}


def write_csv(separator=",", decimal="."):
    cells = [line.split(",") for line in PLAIN.splitlines()]
    lines = [separator.join(cell.replace(".", decimal) for cell in row) for row in cells]
    return "\r\n".join(lines) + "\r\n"


def read(folder, content, name="t.csv", written="utf-8", **stated):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode(written))
    file = TableFile(path, Dialect(**stated))
    return file.read().to_pydict(), file


def rejected(folder, content, name="t.csv", **stated):
    with pytest.raises(TableError) as caught:
        read(folder, content, name, **stated)
    return str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
@pytest.mark.parametrize(
    ("separator", "decimal"), [(",", "."), (";", ","), (";", "."), ("\t", ","), ("|", ".")]
)
def test_separator_decimal_sign_and_encoding_are_detected(tmp_path, separator, decimal, encoding):
    table, file = read(tmp_path, write_csv(separator, decimal), written=encoding)
    assert table == EXPECTED
    assert file.dialect.separator == separator
    assert bool(file.notes) == (encoding == "cp1252")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-be", "latin-1"])
def test_what_is_stated_is_not_detected(tmp_path, encoding):
    stated = {"separator": ";", "decimal": ",", "encoding": encoding, "quote": '"'}
    table, file = read(tmp_path, write_csv(";", ","), written=encoding, **stated)
    assert table == EXPECTED
    assert not file.notes


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz", "t.csv.gz", "T.CSV.GZ"])
def test_the_extension_states_separator_and_compression(tmp_path, name):
    content = write_csv("\t" if "tsv" in name else ",").encode()
    table, file = read(tmp_path, gzip.compress(content) if "gz" in name.lower() else content, name)
    assert table == EXPECTED
    assert not file.notes


CELLS = st.text(alphabet="ab1,;|\t.'\"\n -ü?", max_size=6)


@given(st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n))))
def test_an_ordinary_comma_file_is_read_as_arrow_reads_it(tmp_path_factory, rows):
    names = [f"{index};'x|" for index in range(len(rows[0]) if rows else 2)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([names, *rows])
    path = tmp_path_factory.mktemp("ordinary") / "t.csv"
    path.write_text(text.getvalue(), newline="")
    options = pa.csv.ConvertOptions(strings_can_be_null=True)
    expected = pa.csv.read_csv(path, convert_options=options)
    table = read_table(path)
    assert table.column_names == expected.column_names
    for mine, theirs in zip(table.columns, expected.columns, strict=True):
        assert mine.to_pylist() == theirs.to_pylist()


def test_decimal_commas_are_not_detected_where_commas_separate_columns(tmp_path):
    text = 'a,b\n"1,5",1\n"2,5",2\n'
    assert read(tmp_path, text)[0]["a"] == ["1,5", "2,5"]
    assert read(tmp_path, text, decimal=",")[0]["a"] == [1.5, 2.5]


def test_thousands_are_detected_beside_decimal_commas(tmp_path):
    table, file = read(
        tmp_path, "a;b;c;d\n1.234,5;1.200;1 000,5;x\n7,25;12.000;7;y\n-0,5;3;2,5;z\n"
    )
    assert table["a"] == [1234.5, 7.25, -0.5]
    assert table["b"] == [1200, 12000, 3]
    assert table["c"] == [1000.5, 7.0, 2.5]
    assert "column 'b': the point in '1.200' is assumed to separate thousands" in file.notes[0]


def test_columns_with_points_stay_as_they_are_beside_decimal_commas(tmp_path):
    table, file = read(tmp_path, "a;b\n1,5;1.25\n2,5;3.5\n")
    assert table == {"a": [1.5, 2.5], "b": [1.25, 3.5]}
    assert file.notes == ["column 'b' has decimal points, others have commas"]


def test_thousands_are_stated_where_points_are_decimal(tmp_path):
    text = 'a,b\n"1,234.5",x\n"-12,345,678",y\n7,z\n'
    assert read(tmp_path, text)[0]["a"] == ["1,234.5", "-12,345,678", "7"]
    assert read(tmp_path, text, thousands=",")[0]["a"] == [1234.5, -12345678.0, 7.0]
    assert read(tmp_path, "a;b\n1'234;5\n2;6\n", thousands="'")[0]["a"] == [1234, 2]


@pytest.mark.parametrize(
    ("separator", "values"), [(";", [1.234, 5.678]), ("\t", ["1,234", "5,678"])]
)
def test_commas_that_may_separate_thousands_are_decimal_beside_semicolons_only(
    tmp_path, separator, values
):
    table, file = read(tmp_path, f"a{separator}b\n1,234{separator}x\n5,678{separator}y\n")
    assert table["a"] == values
    assert any("is assumed to be a decimal comma" in note for note in file.notes) == (
        separator == ";"
    )


def test_a_few_values_that_are_not_numbers_do_not_hide_decimal_commas(tmp_path):
    text = "a;b\n1,5;x\n?;y\n2,5;z\n"
    assert read(tmp_path, text)[1].dialect.decimal == ","
    assert read(tmp_path, text, missing=("?",))[0]["a"] == [1.5, None, 2.5]


def test_two_fitting_separators_are_a_note(tmp_path):
    text = "Länge, cm;Breite, cm\n1,5;2,5\n"
    table, file = read(tmp_path, text)
    assert list(table) == ["Länge", " cm;Breite", " cm"]
    assert file.notes == [
        "',' is assumed to separate columns, ';' would also fit; state it with --separator"
    ]
    table, file = read(tmp_path, text, separator=";")
    assert table == {"Länge, cm": [1.5], "Breite, cm": [2.5]}
    assert not file.notes


def test_quoted_text_may_hold_separators_quotes_and_lines(tmp_path):
    text = 'a,b\n"x, ""y""\nz",1\n"w;",2\n'
    assert read(tmp_path, text)[0] == {"a": ['x, "y"\nz', "w;"], "b": [1, 2]}


def test_lines_within_text_may_lie_anywhere_in_a_large_file(tmp_path):
    table = read(tmp_path, "a,b\n" + '"first\nsecond",1\n' * 150_000)[0]
    assert table["b"] == [1] * 150_000
    assert set(table["a"]) == {"first\nsecond"}


def test_empty_lines_are_not_rows(tmp_path):
    assert read(tmp_path, "\na;b\n\n1,5;2\n\n\n2,5;3\n\n")[0] == {"a": [1.5, 2.5], "b": [2, 3]}


def test_single_quotes_are_quotes_only_where_the_file_cannot_be_read_without(tmp_path):
    table, file = read(tmp_path, "a,b\n'x, y',1\n'z',2\n")
    assert table == {"a": ["x, y", "z"], "b": [1, 2]}
    assert "single quotes" in file.notes[0]
    text = "a,b\n'x',1\n'z',2\n"
    table, file = read(tmp_path, text)
    assert table["a"] == ["'x'", "'z'"]
    assert file.notes == [
        "column 'a' keeps the single quotes around its values: --quote \"'\" removes them"
    ]
    assert read(tmp_path, text, quote="'")[0]["a"] == ["x", "z"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a,b\n1,2\n3,4\n', "a quote may not be closed (--quote)"),
        ('a,b\n"x,1\ny,2\n', "row 0 has 1 fields where the first row has 2 names"),
    ],
)
def test_a_quote_left_open_does_not_make_quotes_of_other_characters(tmp_path, text, message):
    assert message in rejected(tmp_path, text)


def test_quotes_may_be_ordinary_characters(tmp_path):
    text = 'a\tb\n"x\t1\ny"\t2\n'
    assert read(tmp_path, text, "t.tsv", quote="none")[0] == {"a": ['"x', 'y"'], "b": [1, 2]}


def test_a_file_that_is_not_utf8_far_down_is_read_in_windows_encoding(tmp_path):
    text = "t,a\n" + "x,1\n" * 100_000
    table, file = read(tmp_path, text.encode() + "Grün,2\n".encode("cp1252"))
    assert table["t"][-1] == "Grün"
    assert file.notes == [
        "not utf-8: byte 0xfc at offset 400006 (line 100002); cp1252 is assumed,"
        " state it with --encoding"
    ]


@pytest.mark.parametrize(
    ("content", "stated", "message"),
    [
        (
            b"a,b\nK\xf6ln,1\n",
            {"encoding": "utf-8"},
            "t.csv: not utf-8: byte 0xf6 at offset 5 (line 2)",
        ),
        (b"\xf6,b\n1,1\n", {"encoding": "utf-8"}, "byte 0xf6 at offset 0 (line 1)"),
        ("a,b\n1,2\n".encode("utf-16") + b"\0", {}, "not utf-16: byte 0x00 at offset 18"),
        (b"\xef\xbb\xbfa,b\n\xf6,2\n", {}, "not utf-8: byte 0xf6 at offset 7"),
        (b"a,b\n\xf6\x81,1\n", {}, "nor cp1252; state its encoding with --encoding"),
        (b"a,b\n\xc3\xbc,1\n", {"encoding": "ascii"}, "not ascii: byte 0xc3 at offset 4"),
        (b"a,b\n1,2\n", {"encoding": "klingon"}, "unknown encoding 'klingon'; known are utf-8"),
        (b"a,b\n1,2\n", {"encoding": "hex"}, "unknown encoding 'hex'"),
    ],
)
def test_bytes_that_break_an_encoding_are_named_with_a_remedy(tmp_path, content, stated, message):
    assert message in rejected(tmp_path, content, **stated)


def test_a_bad_byte_behind_a_chunk_is_counted_from_the_start(tmp_path):
    text = "ä,b\n" + "ü,1\n" * 300_000  # two bytes a letter: chunks end within letters
    message = rejected(tmp_path, text.encode() + b"\xf6,1\n", encoding="utf-8")
    assert f"byte 0xf6 at offset {5 + 5 * 300_000} (line 300002)" in message


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"separator": ";;"}, "--separator must be one character"),
        ({"quote": "''"}, "--quote must be one character"),
        ({"decimal": "x"}, "--decimal must be '.' or ','"),
        ({"decimal": ",", "thousands": ","}, "--thousands and --decimal are both ','"),
        ({"thousands": "1"}, "--thousands '1' cannot separate digits"),
        ({"separator": "'", "quote": "'"}, "--separator and --quote are both"),
    ],
)
def test_a_dialect_that_contradicts_itself_is_rejected(stated, message):
    with pytest.raises(TableError, match=message):
        Dialect(**stated)


def test_a_separator_may_have_a_name():
    assert Dialect(separator="tab").separator == Dialect(separator="\\t").separator == "\t"


def parquet_bytes():
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table({"a": [1]}), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", parquet_bytes(), "holds Parquet data: give it a name that ends in .parquet"),
        ("t.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "is compressed with gzip"),
        ("t.csv", b"PK\x03\x04sheet", "is a ZIP or Excel file: save the sheet as CSV first"),
        ("t.csv.gz", b"a,b\n1,2\n", "cannot be read as CSV"),
        ("t.parquet", b"a,b\n1,2\n", "cannot be read as Parquet"),
        ("t.csv", b"", "the file is empty"),
        ("t.csv", b"\n\n", "the file is empty"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_rejected(tmp_path, name, content, message):
    assert message in rejected(tmp_path, content, name)


def test_a_row_of_names_longer_than_the_sample_is_read_whole(tmp_path):
    names = [f"column_{index:06d}" for index in range(30_000)]
    text = ";".join(names) + "\n" + ";".join(["1"] * len(names)) + "\n"
    assert read(tmp_path, text)[1].header == names


def test_values_that_mean_missing_are_missing_in_every_file(tmp_path):
    table = pa.table({"a": ["x", "?", "-"], "b": [1, 2, 3]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    pa.csv.write_csv(table, tmp_path / "t.csv")
    for name in ("t.parquet", "t.csv"):
        table = read_table(tmp_path / name, dialect=Dialect(missing=("?", "-")))
        assert table["a"].to_pylist() == ["x", None, None]
