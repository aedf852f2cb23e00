"""Printed form of reports: a short summary, and the full text on request."""

from textwrap import fill
from typing import NamedTuple

WIDTH = 80  # columns of the summary


def wrapped(text):
    """Break a line of a summary into lines of its width."""
    return fill(text, WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def aligned(rows, left):
    """Lines of a table; the columns whose numbers are ``left`` are aligned on the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


class Table(NamedTuple):
    """Table of a report, shown on request; ``left`` are the columns aligned on the left."""

    title: str
    rows: list
    header: tuple = ()
    left: tuple = (0,)

    def text(self):
        """Format the title and the aligned columns as text."""
        lines = aligned([self.header, *self.rows] if self.header else self.rows, self.left)
        return "\n".join([f"{self.title}:", *(f"  {line}" for line in lines)])


class Printed:
    """Report with a short summary and tables.

    A subclass has ``_summary``, which returns pairs of a heading and its text, the verdict
    first; and ``_tables``, which returns a list of `Table`.
    """

    def __repr__(self):
        return "\n".join(wrapped(f"{heading}: {what}") for heading, what in self._summary())

    def full(self):
        """Format the whole report as text.

        Returns
        -------
        str
            The summary and all tables, for ``print``.
        """
        return "\n\n".join([repr(self), *(table.text() for table in self._tables())])
