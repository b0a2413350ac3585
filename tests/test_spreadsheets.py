"""Forty spreadsheets of bad habits: each is read as it is meant, or one line says what to type, and that works.

Every case is the same table of numbers, written badly. Where it is read, the numbers are compared with the true ones.
"""

import re
import shlex
from zipfile import ZipFile

import numpy as np
import pytest

from idm_nb import TableMap, in_parts
from idm_nb.command.command_line import build_parser, main
from idm_nb.command.jobs import model_of_table, reading_of
from idm_nb.tables.answers import style_of
from idm_nb.tables.reading import read_table, table_at, tables_of
from idm_nb.tables.roles import read_for_fit
from idm_nb.tables.table_map import model_to_fit

N = 24
A = np.random.default_rng(0).normal(size=N).round(2) + 5
B = np.round(1000 * np.random.default_rng(1).uniform(1, 900, N)) + 10_000
Y = np.round(A + B / 1e5, 3)


def table(head="a,b,y", row="{a},{b:.0f},{y}", mark="\n", first=0, **more):
    "Lines of the table: names, and a row made of `a`, `b`, `y`, the number `k` and other columns."
    cells = lambda k: {n: cell(k) for n, cell in more.items()}
    lines = [row.format(a=a, b=b, y=y, k=k, **cells(k)) for k, a, b, y in ROWS]
    return mark.join([*([head] if head else []), *lines[first:]]) + mark


ROWS = list(zip(range(N), A, B, Y))
comma = lambda text: text.replace(".", ",")
swiss = lambda b, mark: f"{b:,.0f}".replace(",", mark)
beside = lambda name, cell: table(f"a,b,{name},y", "{a},{b:.0f},{s},{y}", s=cell)
in_b = lambda cell: table(row="{a},{s},{y}", s=cell)
PLAIN = table()
GERMAN = comma(table("a;b;y", "{a};{b:.0f};{y}"))
GERMAN_QUOTED = comma(table("a;b;y", '"{a}";{b:.0f};"{y}"'))

# name: text or bytes, and words that are said of it beside the numbers
WORKS = {
    "plain": (PLAIN, ""),
    "blanks between cells": (PLAIN.replace(",", " "), ""),
    "unnamed index column": (table(",a,b,y", "{k},{a},{b:.0f},{y}"), "taken as the index"),
    "index saved twice": (table("Unnamed: 0,a,b,y", "{k},{a},{b:.0f},{y}"), "taken as the index"),
    "unnamed index of words": (table(",a,b,y", "p{k},{a},{b:.0f},{y}"), "taken as the index"),
    "byte-order mark": (b"\xef\xbb\xbf" + PLAIN.encode(), ""),
    "UTF-16 of a spreadsheet": (PLAIN.replace(",", "\t").encode("utf-16"), ""),
    "lines of Windows": (PLAIN.replace("\n", "\r\n"), ""),
    "lines of old Macintosh": (PLAIN.replace("\n", "\r"), ""),
    "blanks around cells": (table(" a , b , y ", " {a} , {b:.0f} , {y} "), ""),
    "empty last rows": (PLAIN + ",,\n,,\n,,\n", "empty rows, which are left out: 3"),
    "empty lines in between": (PLAIN.replace("\n", "\n\n"), ""),
    "empty last columns": (table("a,b,y,,", "{a},{b:.0f},{y},,"), ""),
    "names of several lines": (
        "\r\r" + table('"one\n\nunit",a,b,y', "mm,{a},{b:.0f},{y}", mark="\r"),
        "",
    ),
    "plus signs": (table(row="+{a},{b:.0f},{y}"), ""),
    "scientific notation": (table(row="{a:.10E},{b:.10e},{y}"), ""),
    "units in the cells": (table(row="{a} mm,{b:.0f},{y}"), f"'{A[0]} mm' is read as {A[0]:.6g}"),
    "a currency": (table(row="${a},{b:.0f},{y}"), f"'${A[0]}' is read as {A[0]:.6g}"),
    "percent signs": (table(row="{z} %,{b:.0f},{y}", z=lambda k: repr(float(100 * A[k]))), ""),
}

# name: text or bytes, words of the line that is said, and what is typed then
TYPED = {
    "decimal comma": (GERMAN, "type --decimal ,", "--decimal ,"),
    "decimal comma in quotes": (GERMAN_QUOTED.replace(";", ","), "type --decimal ,", "--decimal ,"),
    "thousands": (
        table(row='{a},"{b:,.0f}",{y}'),
        "type --decimal , if the comma begins the decimals, or --thousands ,",
        "--thousands ,",
    ),
    "thousands and decimals": (
        table(row='{a},"{b:,.2f}",{y}'),
        "type --thousands ,",
        "--thousands ,",
    ),
    "German thousands": (
        comma(table("a;b;y", "{a};{s};{y}", s=lambda k: swiss(B[k], "#") + ".0")).replace("#", "."),
        "type --",
        "--thousands .",
    ),
    "Swiss thousands": (in_b(lambda k: swiss(B[k], "'")), "type --thousands", '--thousands "\'"'),
    "blanks as thousands": (
        in_b(lambda k: swiss(B[k], "\xa0")),
        "type --thousands",
        "--thousands '\xa0'",
    ),
    "a mark for gaps in a column": (
        beside("c", lambda k: k if k % 5 else "?"),
        "type --missing '?' if that marks a gap",
        "--missing ? --ignore c",
    ),
    "a code that is no number": (
        beside("c", lambda k: k + 100 if k != 3 else "136A"),
        "which is not a number; type --words c if the column holds words or codes, or correct it",
        "--words c",
    ),
    "a word": (
        beside("c", lambda k: k if k != 3 else "lost"),
        "type --missing lost if that marks a gap",
        "--ignore c",
    ),
    "units below the names": (
        PLAIN.replace("a,b,y\n", "a,b,y\nmm,kg,s\n"),
        "type --units if that line holds units",
        "--units",
    ),
    "a title": (
        "Measurements of spring\n\n" + PLAIN,
        "type --skip N for N lines above the names",
        "--skip 2",
    ),
    "merged headings": ("left,,right\n" + PLAIN, "type --skip N for N lines above it", "--skip 1"),
    "Latin-1": (
        PLAIN.replace("b", "Größe").encode("latin-1"),
        "type --encoding latin-1",
        "--encoding latin-1",
    ),
    "Latin-1 in a cell": (
        table("a,b,town,y", "{a},{b:.0f},Zürich,{y}").encode("latin-1"),
        "type --encoding latin-1",
        "--encoding latin-1 --ignore town",
    ),
}

EACH, WEEKS = "a coordinate for each word", "days, time of week"
FILLED, NAMES = "number; gaps filled, and marked", "left out: names the rows"
# name: text, the column beside `a` and `b`, its kind and what is done with it
READ = {
    "two words": (beside("sex", lambda k: "fm"[k % 2]), ("sex", "words", EACH)),
    "several words": (
        beside("town", lambda k: ["Bern", "Ulm", "Graz"][k % 3]),
        ("town", "words", EACH),
    ),
    "identifiers": (table("who,a,b,y", "p{k},{a},{b:.0f},{y}"), ("who", "names", NAMES)),
    "dates of databases": (
        table("day,a,b,y", "2024-01-{s},{a},{b:.0f},{y}", s=lambda k: f"{k + 1:02}"),
        ("day", "date", WEEKS),
    ),
    "dates of offices": (
        table("day,a,b,y", "{s}.1.2024,{a},{b:.0f},{y}", s=lambda k: k + 1),
        ("day", "date", WEEKS),
    ),
    "times": (
        table("at,a,b,y", "12:{s},{a},{b:.0f},{y}", s=lambda k: k + 10),
        ("at", "number", "number of hours"),
    ),
    "gaps": (beside("c", lambda k: k if k % 5 else ""), ("c", "number", FILLED)),
    "a line too short": (
        table("a,b,y,c", "{a},{b:.0f},{y},{k}") + "1,2,3\n",
        ("c", "number", FILLED),
    ),
}

# name: text or bytes, words of the line that is said; the file has to change, or another name be typed
REFUSED = {
    "duplicate names": (table("a,a,y"), "two columns named 'a': rename one of them", 1),
    "no names": (
        table(""),
        "no column 'y'; its columns are c0, c1, c2 (its first line holds numbers",
        2,
    ),
    "row names without a name": (
        table(row="p{k},{a},{b:.0f},{y}"),
        "put the mark between cells before the first name",
        1,
    ),
    "a feature of words": (
        table(row="{a},{b:.0f},{s}", s=lambda k: "low mid high".split()[k % 3]),
        "If they have an order, type --order",
        1,
    ),
    "a feature without values": (table(row="{a},{b:.0f},"), "has no value in any row", 1),
    "aligned by blanks": (table("a  b  y", "{a}  {b:.0f}  {y}"), "type tr -s ' ' ','", 1),
    "a mixture of marks": (
        table(row="{s},{b:.0f},{y}", s=lambda k: '"1,5"' if k == 2 else A[k]),
        "write all decimals in one way, or type --words a",
        1,
    ),
}

# name: text, and the words of a warning
WARNED = {
    "a column that counts": (
        table("id,a,b,y", "{k},{a},{b:.0f},{y}"),
        "counts the rows and is used as data; as index it is left out",
    ),
    "a last row of totals": (
        table(",a,b,y", "p{k},{a},{b:.0f},{y}") + "Total,1,2,3\n",
        "the last row is named 'Total'",
    ),
    "several rows of a person": (
        table(",a,b,y", "{s},{a},{b:.0f},{y}", s=lambda k: f"p{k // 3}"),
        "name it as groups if such rows belong together",
    ),
}


def write(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def numbers_of(path, *typed):
    "The table, the roles of its columns, and the feature that a fit would use."
    options = build_parser().parse_args(["fit", path, "--feature", "y", "--out", "o", *typed])
    found, model = read_table(path, **reading_of(options)), model_of_table(options)
    return found, *read_for_fit(model, found, model_to_fit(model))[2:]


def check(path, *typed):
    "The true numbers are read, and nothing else."
    found, roles, y = numbers_of(path, *typed)
    data = [name for name in roles.data if name not in ("sex", "town", "day", "at", "c")]
    # a percentage is divided by a hundred, which costs the last digit
    assert np.allclose(found.numbers(data)[:N], np.c_[A, B], rtol=1e-15, atol=0)
    assert np.array_equal(y[:N, 0], Y)
    return found, roles


@pytest.mark.parametrize("name", WORKS)
def test_read_as_it_is_meant(name, tmp_path):
    "As a whole, and in pieces."
    text, words = WORKS[name]
    _, roles = check(write(tmp_path, text))
    assert words in " ".join(roles.notes)
    tables = list(tables_of(tmp_path / "t.csv", rows=7))
    found = np.vstack([table.numbers(["a", "b", "y"]) for table in tables])
    assert np.allclose(found, np.c_[A, B, Y], rtol=1e-15, atol=0) and len(tables) == 4


@pytest.mark.parametrize("name", READ)
def test_words_dates_and_gaps_are_read(name, tmp_path):
    text, (column, kind, use) = READ[name]
    _, roles = check(write(tmp_path, text))
    assert (column, kind, use) in [(plan.name, plan.kind, plan.use) for plan in roles.plans]


@pytest.mark.parametrize("name", TYPED)
def test_a_message_says_what_to_type(name, tmp_path, capsys):
    text, words, typed = TYPED[name]
    path = write(tmp_path, text)
    assert main(["fit", path, "--feature", "y", "--out", str(tmp_path / "o"), "--quiet"]) == 1
    said = capsys.readouterr().err.strip()
    assert said.startswith("idm-nb: error: ") and words in said, said
    check(path, *shlex.split(typed))
    left = [wrong(path, *option) for option in remedies(said)]
    assert "" in left and wrong(path) not in left  # each remedy helps, and one of them is enough


def wrong(path, *typed):
    "What is said of the table at a path with these options; nothing if it is read."
    try:
        return str(numbers_of(path, *typed) and "")
    except ValueError as error:
        return str(error)


def remedies(said):
    "The options that a message names, as they are typed; N may be one or two lines."
    value = r"""(?: (?!if |or |for )((?:'[^']*'|"[^"]*"|[^\s'"])+))?"""
    found = re.findall(r"(--\w+)" + value, said)
    found = [(name, *shlex.split(v if v == "," else v.rstrip(",)"))) for name, v in found]
    lines = [(name, n) for name, *value in found if value == ["N"] for n in "12"]
    return [option for option in found if option[-1] != "N"] + lines


@pytest.mark.parametrize("name", REFUSED)
def test_one_line_says_what_is_wrong(name, tmp_path, capsys):
    text, words, status = REFUSED[name]
    path = write(tmp_path, text)
    assert main(["fit", path, "--feature", "y", "--out", str(tmp_path / "o"), "--quiet"]) == status
    said = capsys.readouterr().err.strip()
    assert said.startswith("idm-nb: error: ") and "\n" not in said and words in said, said


@pytest.mark.parametrize("name", WARNED)
def test_what_is_rarely_meant_is_said(name, tmp_path):
    text, words = WARNED[name]
    assert words in " ".join(numbers_of(write(tmp_path, text))[1].notes)


def test_all_problems_are_named_at_once(tmp_path, capsys):
    text = table("a,b,c,d,y", '{a},"{b:,.2f}",{s},{k},{y}', s=lambda k: k if k != 3 else "?")
    command = ["fit", write(tmp_path, text), "--feature", "y", "--out", str(tmp_path / "o")]
    assert main(command) == 1
    said = capsys.readouterr().err
    for words in ("type --thousands ,", "type --missing '?'"):
        assert words in said, said
    assert "needs a decision" in said and "d       number" in said  # the table of the columns


@pytest.mark.parametrize("typed", ["-999", "-999.0", "-999,0"])
def test_codes_of_gaps_are_numbers(typed, tmp_path):
    code = lambda k: k if k % 5 else ["-999", "-999.0"][k % 2]
    text = comma(table("a;b;c;y", "{a};{b:.0f};{s};{y}", s=code))
    found, roles, _ = numbers_of(write(tmp_path, text), "--decimal", ",", "--missing", f" {typed}")
    assert np.isnan(found.frame.c).tolist() == [k % 5 == 0 for k in range(N)]
    assert f"gaps marked by {typed}: 5 in 'c'" in roles.notes
    roles = numbers_of(write(tmp_path, PLAIN), "--missing", "-200")[1]
    assert "gaps marked by -200: none; is the mark right?" in roles.notes


def test_identifiers_stay_as_they_are(tmp_path):
    "Zeros in front of a number are part of a name."
    text = table("id,a,b,y", "{s},{a},{b:.0f},{y}", s=lambda k: f"{k:03}")
    found, _ = check(write(tmp_path, text), "--index", "id")
    assert found.frame.id.tolist() == [f"{k:03}" for k in range(N)]


def test_the_minus_sign_of_typesetters(tmp_path):
    found, roles, _ = numbers_of(write(tmp_path, table(row="\u2212{a},{b:.0f},{y}")))
    assert np.array_equal(found.numbers(roles.data), np.c_[-A, B])


def test_decimals_of_two_kinds_are_refused(tmp_path):
    path = write(tmp_path, table(row='{a},{b:.0f},"{z}"', z=lambda k: comma(str(Y[k]))))
    assert "type reading={'decimal': ','}" in read_table(path).problems["y"]
    assert "write all decimals in one way" in read_table(path, decimal=",").problems["a"]


def test_excel(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"": [f"p{k}" for k in range(N)], "a": A, "b": B, "y": Y})
    frame["day"], frame["sex"] = pd.date_range("2024-01-01", periods=N), ["f", "m"] * (N // 2)
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        frame.to_excel(book, sheet_name="spring", index=False, startrow=2)
        frame.to_excel(book, sheet_name="autumn", index=False)
    found, roles = check(str(tmp_path / "t.xlsx"))
    assert roles.index == "index" and roles.data == ["a", "b", "day", "sex"]
    assert "read sheet 'spring'; others: autumn (option sheet)" in roles.notes
    assert read_table(tmp_path / "t.xlsx", sheet="autumn").frame.equals(found.frame)
    with pytest.raises(ValueError, match="has no sheet 'winter'; it has spring, autumn"):
        read_table(tmp_path / "t.xlsx", sheet="winter")


@pytest.mark.parametrize("name", ["t.zip", "t.csv.zip", "t.json", "columns.json", "t.jsonl"])
def test_archives_and_records_are_read_like_csv(name, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": A, "sex": ["f", "m"] * (N // 2), "y": Y})
    frame["day"] = pd.date_range("2024-01-01", periods=N).astype(str)
    frame.loc[3, ["a", "sex"]] = np.nan, None
    frame.to_csv(tmp_path / "t.csv", index=False)
    records = dict(orient=None if name == "columns.json" else "records", double_precision=15)
    if "json" in name:
        frame.to_json(tmp_path / name, lines=name.endswith("l"), **records)
    else:
        frame.to_csv(tmp_path / name, index=False)
    found, known = (read_table(tmp_path / path).frame for path in (name, "t.csv"))
    pd.testing.assert_frame_equal(found, known)


def test_archives_of_several_files_and_lists_in_cells_are_refused(tmp_path):
    with ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.csv", "a,y"), archive.writestr("b.csv", "b,y")
    (tmp_path / "t.json").write_text('[{"a": 1, "b": [1, 2]}]')
    with pytest.raises(ValueError, match="holds 2 files: unpack it"):
        read_table(tmp_path / "t.zip")
    with pytest.raises(ValueError, match="column 'b' holds lists"):
        read_table(tmp_path / "t.json")


def test_words_after_many_numbers_leave_the_numbers_as_they_are_written(tmp_path):
    "pandas reads a wide table in pieces, each with a kind of its own."
    lines = ["1," * 400 + word for word in ["007"] * 2100 + ["unknown"] * 99]
    names = ",".join(f"x{k}" for k in range(401))
    (tmp_path / "t.csv").write_text("\n".join([names, *lines]))
    column = read_table(tmp_path / "t.csv").frame.x400
    assert column.iloc[0] == "007" and column.iloc[-1] == "unknown"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_string_is_one_name_and_None_may_be_a_word(ending, tmp_path):
    pd = pytest.importorskip("pandas")
    additive = ["None", "NA", "salt", ""] * (N // 4)
    frame = pd.DataFrame({"a": A, "b": B, "additive": additive, "y": Y}).astype({"a": object})
    frame.loc[2, "a"] = "n.d."
    path = tmp_path / f"t.{ending}"
    frame.astype({"a": str}).to_csv(path) if ending == "csv" else frame.astype(str).to_parquet(path)
    table = read_table(path, missing="n.d.", words="additive")
    assert table.frame.a.dtype.kind == "f" and np.isnan(table.frame.a[3])
    assert table.frame.additive[:4].tolist() == ["None", "NA", "salt", None]
    plain = read_table(path, missing="n.d.").frame.additive
    assert plain[:4].tolist() == [None, None, "salt", None]
    reading = dict(missing="n.d.", words="additive")
    model = TableMap("y", ignore="b", columns="additive", reading=reading, random_state=0)
    with pytest.warns(UserWarning, match="too few"):
        fitted = model.fit(path).fitted_
    assert fitted.encoder.labels()[:3] == [f"additive = {word}" for word in ("NA", "None", "salt")]
    again = table_at(path, style_of(fitted, {"missing": "n.d."}))  # known from training
    assert again.frame.additive.equals(table.frame.additive)
    assert in_parts(np.ravel, path, tmp_path / "b.npy", columns="b") == N
