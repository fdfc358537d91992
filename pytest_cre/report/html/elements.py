"""Elements of the page. Text gets into them only here, clean, and is escaped when they are written."""

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from pytest_cre.judge.words import number_words
from pytest_cre.report.text import clean


def element(tag: str, *contents: "ET.Element | str | None", **attributes: str) -> ET.Element:
    """Return an element with these contents, in order; None is left out.

    `class_` gives the attribute `class`.
    """
    made = ET.Element(
        tag, {name.rstrip("_"): clean(value) for name, value in attributes.items() if value}
    )
    for each in contents:
        if isinstance(each, str):
            _add_text(made, clean(each))
        elif each is not None:
            made.append(each)
    return made


def number(value: float | None, unit: str = "") -> "ET.Element | str":
    """Return a number as people read it, with every digit of it as its value."""
    if value is None:
        return "-"
    words = number_words(value)
    shown = f"{words} {unit}" if unit not in ("", "ratio", "count") else words
    return element("data", shown, value=repr(value))


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence["ET.Element | str | None"]],
    *,
    numeric: Sequence[int] = (),
) -> ET.Element:
    """Return a table; the columns `numeric` are aligned right."""

    def cell(tag: str, column: int, content: "ET.Element | str | None") -> ET.Element:
        return element(tag, content, class_="number" if column in numeric else "")

    head = element("tr", *(cell("th", at, each) for at, each in enumerate(headers)))
    body = [element("tr", *(cell("td", at, each) for at, each in enumerate(row))) for row in rows]
    return element("table", element("thead", head), element("tbody", *body))


def facts(pairs: Iterable[tuple[str, "ET.Element | str | None"]]) -> ET.Element:
    """Return names with their values, without those that are absent."""
    parts = []
    for name, value in pairs:
        if value is not None and value != "":
            parts += [element("dt", name), element("dd", value)]
    return element("dl", *parts)


def bullets(lines: Iterable[str]) -> ET.Element | None:
    """Return a list of texts, None for none."""
    found = [element("li", line) for line in lines]
    return element("ul", *found) if found else None


def folded(title: str, *contents: "ET.Element | str | None", is_open: bool = False) -> ET.Element:
    """Return contents that a reader unfolds."""
    made = element("details", element("summary", title), *contents)
    if is_open:
        made.set("open", "")
    return made


def verdict(code: str) -> ET.Element:
    """Return a verdict, coloured by its meaning; the word stays readable without colour."""
    return element("span", code, class_=f"verdict {code.lower()}")


def _add_text(made: ET.Element, text: str) -> None:
    if len(made):
        made[-1].tail = (made[-1].tail or "") + text
    else:
        made.text = (made.text or "") + text
