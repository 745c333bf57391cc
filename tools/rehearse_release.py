"""Rehearses a release on this machine: `make rehearsal`, RELEASING.md's recipe without its uploads.

A package index of this process's own gets the sdist and the wheel from twine. An empty environment
installs arrowdl from that index alone, and runs tests/smoke.py and the demo on it.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Settings of this machine name other indexes.
CLEAN = {
    name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))
}
CLEAN |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


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


def rehearse(scratch: Path, files: list[Path], version: str) -> None:
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
    run(python, "-I", ROOT / "tests/smoke.py")
    lend_libraries(python)
    run(python, ROOT / "examples/flights.py", cwd=scratch)


def lend_libraries(python: Path) -> None:
    """What the demo imports, of this environment; arrowdl's editable install is none of it."""
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
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    notes = release_notes(version, (ROOT / "CHANGELOG.md").read_text())
    if any(file.name.split("-")[1].removesuffix(".tar.gz") != version for file in files):
        sys.exit(f"pyproject.toml has version {version}, the files are {files}: build them again")
    with tempfile.TemporaryDirectory() as scratch:
        rehearse(Path(scratch), files, version)
    options.notes.write_text(notes + "\n")
    print(f"arrowdl {version} can be released; the tag's message is in {options.notes}")


if __name__ == "__main__":
    main()
