"""Formulas as MathML, which browsers draw without MathJax and so without internet."""

import re
import unicodedata
from html import escape, unescape

import latex2mathml.converter
from docutils.nodes import SkipNode
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

# what the converter does not know, in words that it knows
SYNONYMS = {
    r"\langle": "⟨",
    r"\rangle": "⟩",
    r"\lVert": "‖",
    r"\rVert": "‖",
    "{aligned}": "{align*}",
}
FUNCTION = re.compile(
    r"(?<!<msub>)(?<!<msup>)(?<!<munder>)(?<!<msubsup>)"
    r"<mi>(log|ln|exp|min|max|sin|cos|det)</mi>(?!<mo[^>]*>(?:&#x00028;|\())"
)
ACCENT = re.compile(
    r'<mover(?: accent="true")?>((?:(?!<mover).)*?)<mo[^>]*>&#x(002D9|000AF|0005E|0007E);</mo>'
)
ACCENTS = {
    "002D9": "00307",
    "000AF": "00304",
    "0005E": "00302",
    "0007E": "00303",
}  # combining ones fit their letter
WORD_JOINER = "&#8288;"
STYLED = re.compile(r'<(m[in]) mathvariant="(bold|bold-italic|sans-serif|script)">([^<]+)</\1>')


def mathml(latex, node, display):
    """MathML of a formula; a warning, and its source, where the converter fails."""
    for command, known in SYNONYMS.items():
        latex = latex.replace(command, known)
    try:
        found = latex2mathml.converter.convert(latex.strip(), display=display)
    except Exception as error:
        logging.getLogger(__name__).warning("formula: %r", error, location=node)
        return f"<code>{escape(latex)}</code>"
    found = ACCENT.sub(
        lambda m: f'<mover accent="true">{m[1]}<mo stretchy="false">&#x{ACCENTS[m[2]]};</mo>', found
    )
    found = FUNCTION.sub(r'<mi>\1</mi><mspace width="0.17em" />', found)
    return STYLED.sub(lambda m: f"<{m[1]}>{styled(unescape(m[3]), m[2])}</{m[1]}>", found)


def styled(letter, style):
    """A letter as a character of its own, as browsers draw no ``mathvariant`` but ``normal``."""
    try:
        _, size, *name = re.sub("LETTER ", "", unicodedata.name(letter)).split()
        wanted = f"{style.upper().replace('BOLD-', 'BOLD ')} {size} {' '.join(name)}"
        try:
            return unicodedata.lookup(f"MATHEMATICAL {wanted}")
        except KeyError:
            return unicodedata.lookup(wanted)  # such as SCRIPT CAPITAL L
    except (KeyError, ValueError):
        return letter


def visit_inline(self, node):
    """A formula within a line, joined to the comma or bracket that follows."""
    self.body.append(mathml(node.astext(), node, "inline") + WORD_JOINER)
    raise SkipNode


def visit_block(self, node):
    """A formula on a line of its own, with its number if it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(mathml(node.astext(), node, "block"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})</span>')
    self.body.append("</div>\n")
    raise SkipNode


def setup(app):
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
