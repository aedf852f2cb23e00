"""Prepare a copy of the repository for a package index: links, project URLs, citation.

A package index shows the README without the files beside it, and needs the address of the project.
This script writes both into the copy in which it is run::

    python doc/contributing/prepare_release.py https://github.com/OWNER/skbayesnn

Relative links of the README then lead to the tag of the version on that host. The files that it
changes are not to be committed.
"""

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![\w+.-]+:|#)([^)\s]+)\)")


def absolute(text, url, tag):
    """Markdown whose relative links lead to a tag of a repository.

    Parameters
    ----------
    text : str
    url : str
        Of the repository, on a host with the addresses of GitHub.
    tag : str
    """

    def replaced(match):
        mark, words, path = match.groups()
        kind = "raw" if mark else "blob"
        return f"{mark}[{words}]({url}/{kind}/{tag}/{path})"

    return LINK.sub(replaced, text)


def with_urls(text, url):
    """``pyproject.toml`` with the addresses of the project."""
    host, owner, name = url.removeprefix("https://").split("/")
    table = {
        "Documentation": f"https://{owner}.{host.replace('.com', '.io')}/{name}",
        "Source": url,
        "Issues": f"{url}/issues",
        "Changelog": f"{url}/blob/main/doc/changes.md",
    }
    lines = "".join(f'{name} = "{address}"\n' for name, address in table.items())
    before, mark, after = text.partition("[project.optional-dependencies]\n")
    return f"{before}[project.urls]\n{lines}\n{mark}{after}"


def with_repository(text, url):
    """``CITATION.cff`` with the address of the repository."""
    return re.sub(r"^(version: .*)$", rf'\1\nrepository-code: "{url}"', text, count=1, flags=re.M)


def prepare(root, url):
    """Change the files below ``root``."""
    url = url.rstrip("/")
    if not re.fullmatch(r"https://[\w.-]+/[\w.-]+/[\w.-]+", url):
        raise SystemExit(f"{url} is not the address of a repository: https://HOST/OWNER/NAME")
    project = root / "pyproject.toml"
    parsed = tomllib.loads(project.read_text("utf-8"))["project"]
    if "urls" in parsed:
        raise SystemExit("pyproject.toml has project URLs already. Run this in a fresh copy.")
    changes = {
        "README.md": lambda text: absolute(text, url, f"v{parsed['version']}"),
        "pyproject.toml": lambda text: with_urls(text, url),
        "CITATION.cff": lambda text: with_repository(text, url),
    }
    for name, change in changes.items():
        path = root / name
        path.write_text(change(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("url", help="of the repository, such as https://github.com/OWNER/skbayesnn")
    prepare(ROOT, parser.parse_args().url)
