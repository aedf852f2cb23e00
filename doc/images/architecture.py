"""Draw the parts of the package and who may import whom, as architecture.svg beside this file.

The rows come from the test that enforces them, the descriptions from the parts' docstrings. Run
with::

    python doc/images/architecture.py
"""

import ast
import importlib.util
from html import escape
from pathlib import Path
from textwrap import wrap

TOP = Path(__file__).parents[2]
WIDTH, MARGIN, GAP, ROW_GAP = 860, 8, 10, 32
FONT = "font-family='sans-serif'"
COLOURS = ["#dbe9f6", "#e3f0de", "#fdf0d0", "#f7e1d3", "#ead9e9", "#e4e4e4", "#d6eef0"]
CAPTION = "Each row may import all rows below it; parts side by side do not know each other."


def rows():
    """`ROWS` of the test of the architecture, foundations first."""
    path = TOP / "tests" / "test_architecture.py"
    spec = importlib.util.spec_from_file_location("test_architecture", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ROWS


def description(part):
    """First paragraph of the docstring of a part of the package."""
    path = TOP / "skbayesnn" / part
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    paragraph = ast.get_docstring(ast.parse(path.read_text())).split("\n\n")[0]
    return " ".join(paragraph.split())


def text(x, y, words, size, weight="normal"):
    """One line of text, centred."""
    style = f"font-size='{size}' font-weight='{weight}' text-anchor='middle' fill='#1a1a1a'"
    return f"<text x='{x:g}' y='{y:g}' {FONT} {style}>{escape(words)}</text>"


def box(x, y, width, height, part, lines, colour):
    """A part with its description."""
    middle = x + width / 2
    shape = f"x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='6'"
    yield f"<rect {shape} fill='{colour}' stroke='#555555'/>"
    yield text(middle, y + 22, part, 16, "bold")
    for i, line in enumerate(lines):
        yield text(middle, y + 42 + 17 * i, line, 13)


def arrow(x, y):
    """From one row to the next."""
    tip = y + ROW_GAP - 6
    shaft = f"x1='{x:g}' y1='{y + 6:g}' x2='{x:g}' y2='{tip - 8:g}'"
    yield f"<line {shaft} stroke='#555555' stroke-width='2'/>"
    corners = f"{x - 6:g},{tip - 9:g} {x + 6:g},{tip - 9:g} {x:g},{tip:g}"
    yield f"<polygon points='{corners}' fill='#555555'/>"


def draw(rows):
    """The picture as text, what users see at the top."""
    shapes, y = [], MARGIN
    for row, colour in zip(rows[::-1], COLOURS[len(rows) - 1 :: -1], strict=True):
        width = (WIDTH - 2 * MARGIN - (len(row) - 1) * GAP) / len(row)
        lines = [wrap(description(part), int(width / 7.8), break_long_words=False) for part in row]
        height = 36 + 17 * max(map(len, lines))
        for i, part in enumerate(row):
            x = MARGIN + i * (width + GAP)
            shapes += box(x, y, width, height, part, lines[i], colour)
        y += height
        if row is not rows[0]:
            shapes += arrow(WIDTH / 2, y)
            y += ROW_GAP
    shapes.append(text(WIDTH / 2, y + 24, CAPTION, 13))
    height = y + 24 + MARGIN
    size = f"viewBox='0 0 {WIDTH} {height:g}' width='{WIDTH}' height='{height:g}'"
    background = f"<rect width='{WIDTH}' height='{height:g}' fill='#ffffff'/>"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' {size} role='img' aria-label='{CAPTION}'>"
    return "\n".join([head, background, *shapes, "</svg>\n"])


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(rows()))
