"""How `make docs` turns these pages into a site: Sphinx reads them as MyST, furo lays them out."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

from docutils import nodes
from docutils.nodes import document
from pygments.lexers.special import TextLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

from seamline import __version__
from seamline.model.errors import SeamlineError

project = "Seamline"
version = release = __version__
copyright = "the authors of Seamline, Apache License 2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_click"]
root_doc = "index"
# README.md lists the pages for those who read them on a code host; index.md does so for the site.
exclude_patterns = ["README.md"]
myst_heading_anchors = 4
default_role = "code"
smartquotes = False

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "Seamline"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}


BESIDE = "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def add_pages_beside(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the pages of a folder below its README: a directive in the file itself would show on a code host."""
    if docname.endswith("/README"):
        source[0] += BESIDE


def name_folders(app: Sphinx, page: document) -> None:
    """Let a link to a folder of the repository be its text: the site has pages, and no listings."""
    for link in [*page.findall(pending_xref)]:
        if link["reftype"] == "myst" and (Path(page["source"]).parent / link["reftarget"]).is_dir():
            link.replace_self(nodes.literal("", link.astext()))


def fold_diagrams(app: Sphinx, page: document) -> None:
    """Fold the source of a diagram away: a code host draws it, and a site that loads nothing does not."""
    for block in [*page.findall(nodes.literal_block)]:
        if block.get("language") == "mermaid":
            begin = nodes.raw(
                "", "<details><summary>The source of a diagram, in Mermaid</summary>", format="html"
            )
            block.replace_self([begin, block.deepcopy(), nodes.raw("", "</details>", format="html")])


def add_exit_code(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Say with which exit code a command ends for an error."""
    if isinstance(thing, type) and issubclass(thing, SeamlineError):
        lines += ["", f"Exit code: {thing.exit_code}."]


def spell_signature(
    app: Sphinx, what: str, name: str, thing: object, options: object, signature: str, result: str
) -> tuple[str, str] | None:
    """Name what a dataclass must be given, and leave the rest to its fields, which follow; errors are made alike."""
    if isinstance(thing, type) and issubclass(thing, Exception):
        return "", ""
    if not isinstance(thing, type) or not is_dataclass(thing):
        return None
    asked = [each for each in fields(thing) if each.init]
    needed = [each.name for each in asked if each.default is MISSING and each.default_factory is MISSING]
    return f"({', '.join([*needed, *(['...'] if len(needed) < len(asked) else [])])})", ""


def setup(app: Sphinx) -> None:
    """Add what the configuration alone cannot say."""
    app.add_lexer("mermaid", TextLexer)  # A code host draws these; here they are read.
    app.connect("source-read", add_pages_beside)
    app.connect("doctree-read", name_folders)
    app.connect("doctree-read", fold_diagrams)
    app.connect("autodoc-process-docstring", add_exit_code)
    app.connect("autodoc-process-signature", spell_signature)
