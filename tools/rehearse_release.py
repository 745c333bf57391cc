"""Rehearses a release on this machine after `make check-package`: RELEASING.md without uploads.

A package index of this process's own gets the sdist and the wheel from twine. An empty environment
installs arrowdl from that index alone, and runs tests/smoke.py and the demo on it. The page of the
index is rendered and kept; the last lines say what a release still lacks.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.parser import Parser
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Settings of this machine name other indexes.
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PIP_", "PYTHON", "GIT_"))
}
CLEAN |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
CLEAN |= {"GIT_CONFIG_GLOBAL": os.devnull}


def release_notes(version: str, changelog: str) -> str:
    """The section of a version: the message of its tag, and the text of the release."""
    found = re.search(
        rf"^## \[{re.escape(version)}\] - (\S+)\n(.*?)(?=^## |\Z)", changelog, re.M | re.S
    )
    if found is None or not found[2].strip():
        sys.exit(
            f"CHANGELOG.md has no section [{version}], the version of pyproject.toml: write it"
        )
    return found[2].strip()


INSTALLS = ("README.md", "docs/index.rst")


def what_is_missing(
    project: Mapping[str, Any], changelog: str, installs: Mapping[str, str]
) -> list[str]:
    """What a person has to write before the release; a rehearsal does without.

    `installs` has the text of each of `INSTALLS`, which say how to install arrowdl.
    """
    missing = [
        f"`pip install arrowdl` in {name}, which says that there is no release"
        for name, text in installs.items()
        if "no release yet" in text or "pip install arrowdl" not in text
    ]
    if not project["urls"].get("Repository"):
        missing.append(
            "Repository in [project.urls] of pyproject.toml (`repository-code` in CITATION.cff and"
            " `repository` in recipe/recipe.yaml too): the page has no link to a file"
        )
    if not re.search(rf"^## \[{re.escape(project['version'])}\] - \d{{4}}-", changelog, re.M):
        missing.append(f"the date of {project['version']} in CHANGELOG.md")
    return missing


def tag_message(scratch: Path, version: str, notes: str) -> str:
    """The message of a tag made of the notes as RELEASING.md says, in a repository of its own."""

    def git(*arguments: str, given: str | None = None) -> str:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x", *arguments]
        done = subprocess.run(
            command, cwd=scratch, env=CLEAN, input=given, capture_output=True, text=True, check=True
        )
        return done.stdout

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", f"Release {version}")
    git("tag", "--annotate", "--cleanup=whitespace", "--file=-", f"v{version}", given=notes)
    return git("tag", "--list", "--format=%(contents)").strip()


class Links(HTMLParser):
    """The addresses of a page, and where its own parts are."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.parts: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("href", "src")]
        self.parts |= {f"#{value}" for name, value in attrs if name == "id"}


def dead_links(page: str) -> list[str]:
    """The addresses of a page that lead nowhere from a package index."""
    links = Links()
    links.feed(page)
    alive = ("https://", "mailto:")
    return [link for link in links.found if not link.startswith(alive) and link not in links.parts]


def render_page(wheel: Path) -> str:
    """The page that the index makes of a wheel."""
    from readme_renderer import markdown  # requirements/package.txt

    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        page = markdown.render(Parser().parsestr(archive.read(name).decode()).get_payload())
    if page is None:
        sys.exit(f"the page of {wheel.name} cannot be rendered")
    if dead := dead_links(page):
        sys.exit(f"the page of {wheel.name} has relative links: {dead}")
    return page


def run(*command: str | Path, cwd: Path | None = None) -> None:
    print("$", " ".join(str(part) for part in command), flush=True)
    subprocess.run(command, check=True, env=CLEAN, cwd=cwd, timeout=600)


@contextmanager
def serve_index(folder: Path) -> Iterator[str]:
    """The address of a package index, to which anyone may upload while it runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "pypiserver", "run", "--interface", "127.0.0.1"]
    command += [
        "--port",
        str(port),
        "--authenticate",
        ".",
        "--passwords",
        ".",
        "--disable-fallback",
    ]
    with subprocess.Popen([*command, str(folder)], env=CLEAN) as server:
        try:
            wait_for(address, server)
            yield address
        finally:
            server.terminate()


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while server.poll() is None and time.monotonic() < end:
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except urllib.error.URLError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"no package index answers at {address}")


def rehearse(scratch: Path, files: list[Path], version: str) -> str:
    """Return the index's page."""
    (scratch / "index").mkdir()
    python = scratch / "environment/bin/python"
    with serve_index(scratch / "index") as index:
        upload = [
            sys.executable,
            "-m",
            "twine",
            "upload",
            "--non-interactive",
            "--disable-progress-bar",
        ]
        run(*upload, "--repository-url", index, "--username", "", "--password", "", *files)
        run(sys.executable, "-m", "venv", scratch / "environment")
        pip = [python, "-m", "pip", "--quiet"]
        simple = f"{index}/simple/"
        run(*pip, "install", "--index-url", simple, "--only-binary", ":all:", f"arrowdl=={version}")
        fetch = ["download", "--no-deps", "--no-build-isolation", "--dest", scratch / "again"]
        run(*pip, *fetch, "--index-url", simple, "--only-binary", ":all:", "arrowdl")
        (wheel,) = (scratch / "again").iterdir()
        assert wheel.read_bytes() in [file.read_bytes() for file in files]
        page = render_page(wheel)
    run(python, "-I", ROOT / "tests/smoke.py")
    lend_libraries(python)
    run(python, ROOT / "examples/flights.py", cwd=scratch)
    return page


def lend_libraries(python: Path) -> None:
    """Lend the demo the libraries of this environment, without arrowdl's editable install."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run(
        [python, "-c", ask], check=True, capture_output=True, text=True, env=CLEAN
    )
    ours = subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True)
    Path(done.stdout.strip(), "lent.pth").write_text(ours.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, help="the sdist and the wheel")
    parser.add_argument(
        "--notes", type=Path, required=True, help="where to write the tag's message"
    )
    options = parser.parse_args()
    files = [file.resolve() for file in options.files]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version, changelog = project["version"], (ROOT / "CHANGELOG.md").read_text()
    notes = release_notes(version, changelog)
    if any(file.name.split("-")[1].removesuffix(".tar.gz") != version for file in files):
        sys.exit(f"pyproject.toml has version {version}, the files are {files}: build them again")
    with tempfile.TemporaryDirectory() as scratch:
        page = rehearse(Path(scratch), files, version)
        (Path(scratch) / "tagged").mkdir()
        assert tag_message(Path(scratch) / "tagged", version, notes) == notes
    options.notes.write_text(notes + "\n")
    shown = options.notes.with_name("index-page.html")
    shown.write_text(f"<!doctype html><meta charset=utf-8>\n{page}")
    print(f"the tag's message is in {options.notes}, the index's page in {shown}")
    missing = what_is_missing(
        project, changelog, {name: (ROOT / name).read_text() for name in INSTALLS}
    )
    for part in missing:
        print(f"a release still needs {part}")
    print(f"arrowdl {version}", "is rehearsed" if missing else "can be released")


if __name__ == "__main__":
    main()
