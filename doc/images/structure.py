"""Draw which modules of the engines and estimators import which, before a change and after it.

Modules stand above all that they import. Run with a checkout of the earlier state::

    git worktree add EARLIER df3eb65
    python doc/images/structure.py EARLIER

It writes structure_before.svg and structure_after.svg beside this file.
"""

import ast
import sys
from html import escape
from pathlib import Path

TOP = Path(__file__).parents[2]
PACKAGES = {"estimators": "#fdf0d0", "predictive": "#f7e1d3", "inference": "#dbe9f6"}
WIDTH, MARGIN, GAP, HEIGHT, LEVEL = 1100, 10, 8, 24, 62
FONT = "font-family='sans-serif' font-size='12' text-anchor='middle' fill='#1a1a1a'"


def imports(root):
    """Modules of the packages, ``package._module``, and those that each of them imports."""
    modules = {}
    for package in PACKAGES:
        for path in sorted((root / "skbayesnn" / package).glob("_[a-z]*.py")):
            modules[f"{package}.{path.stem}"] = ast.parse(path.read_text())
    exported = {}  # names of packages, to the modules that define them
    for package in PACKAGES:
        source = (root / "skbayesnn" / package / "__init__.py").read_text()
        for module, name in names_imported(ast.parse(source)):
            exported[f"skbayesnn.{package}", name] = module.removeprefix("skbayesnn.")
    found = {}
    for name, tree in modules.items():
        theirs = {
            exported.get(pair, pair[0].removeprefix("skbayesnn.")) for pair in names_imported(tree)
        }
        found[name] = sorted((theirs & modules.keys()) - {name})
    return found


def names_imported(tree):
    """Pairs of module and name of every ``from module import name``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def levels(graph):
    """Modules by level: each stands one above the highest that it imports."""
    depth = {}

    def of(name):
        if name not in depth:
            depth[name] = 1 + max((of(other) for other in graph[name]), default=-1)
        return depth[name]

    rows = [[] for _ in range(1 + max(map(of, graph)))]
    for name in graph:
        rows[depth[name]].append(name)
    return rows


def placed(graph, rows):
    """Centres and widths of boxes; modules stand near those that import them."""
    places = {}
    users = {name: [user for user in graph if name in graph[user]] for name in graph}
    for row, names in enumerate(rows[::-1]):
        wanted = {
            name: sum(places[user][0] for user in users[name]) / len(users[name])
            if users[name]
            else WIDTH / 2
            for name in names
        }
        names = sorted(names, key=wanted.get)
        widths = [7.0 * len(name.split(".")[1]) + 12 for name in names]
        space = WIDTH - 2 * MARGIN - sum(widths)
        crowded = space < GAP * len(names)  # then boxes stand in two lines
        space /= len(names) + (-1 if crowded else 1)
        left = MARGIN if crowded else MARGIN + space
        for i, (name, width) in enumerate(zip(names, widths, strict=True)):
            y = MARGIN + LEVEL * row + (HEIGHT + 4) * (crowded and i % 2)
            places[name] = left + width / 2, y, width
            left += width + space
    return places


def draw(graph):
    """The picture as text."""
    rows = levels(graph)
    places = placed(graph, rows)
    n_imports = sum(map(len, graph.values()))
    caption = f"{len(graph)} modules, {n_imports} imports, {len(rows)} levels"
    shapes = []
    for name, others in graph.items():
        x, y, _ = places[name]
        for other in others:
            x2, y2, _ = places[other]
            bend = (y2 - y) / 2
            path = f"M{x:.0f},{y + HEIGHT} C{x:.0f},{y + bend:.0f} {x2:.0f},{y2 - bend:.0f}"
            shapes.append(f"<path d='{path} {x2:.0f},{y2}' stroke='#9a9a9a' fill='none'/>")
    for name, (x, y, width) in places.items():
        package, module = name.split(".")
        shape = f"x='{x - width / 2:.0f}' y='{y}' width='{width:.0f}' height='{HEIGHT}' rx='4'"
        shapes.append(f"<rect {shape} fill='{PACKAGES[package]}' stroke='#555555'/>")
        shapes.append(f"<text x='{x:.0f}' y='{y + 16}' {FONT}>{escape(module[1:])}</text>")
    y = 3 * MARGIN + LEVEL * len(rows)
    for i, (package, colour) in enumerate(PACKAGES.items()):
        x = MARGIN + 110 * i
        shapes.append(f"<rect x='{x}' y='{y - 14}' width='14' height='14' fill='{colour}'/>")
        shapes.append(f"<text x='{x + 55}' y='{y - 2}' {FONT}>{package}</text>")
    shapes.append(f"<text x='{WIDTH - 160}' y='{y - 2}' {FONT}>{caption}</text>")
    size = f"viewBox='0 0 {WIDTH} {y + MARGIN}' width='{WIDTH}' height='{y + MARGIN}'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' {size} role='img' aria-label='{caption}'>"
    return "\n".join(
        [head, "<rect width='100%' height='100%' fill='#ffffff'/>", *shapes, "</svg>\n"]
    )


if __name__ == "__main__":
    for name, root in [("before", Path(sys.argv[1])), ("after", TOP)]:
        Path(__file__).with_name(f"structure_{name}.svg").write_text(draw(imports(root)))
