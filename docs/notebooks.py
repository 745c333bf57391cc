"""The directive `notebook`: a Jupyter notebook's text, code and outputs, as a page shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata


class Notebook(SphinxDirective):
    """Show the notebook at a path without its title, which the page has.

    Its text is paragraphs with `code`, no other Markdown: no package that parses it is needed.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        shown: list[nodes.Node] = []
        for cell in json.loads(Path(path).read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "code":
                shown.append(nodes.literal_block(text, text, language="python"))
                for output in cell["outputs"]:
                    lines = output.get("text") or output["data"]["text/plain"]
                    printed = "".join(lines).rstrip("\n")
                    shown.append(nodes.literal_block(printed, printed, language="text"))
            else:
                text = re.sub(r"\A# .*\n*", "", text)
                shown += self.parse_text_to_nodes(text.replace("`", "``"))
        return shown


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("notebook", Notebook)
    return {"parallel_read_safe": True}
