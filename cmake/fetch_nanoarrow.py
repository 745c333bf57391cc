"""Provides nanoarrow's C sources: bundled with this project, or pinned from pip's index.

    fetch_nanoarrow.py bundle FOLDER     put the source distribution into FOLDER
    fetch_nanoarrow.py extract FOLDER    unpack its C library into FOLDER

Only the source distribution carries the C library. It is asked for through pip, so
that an index, a cache, a proxy or a certificate set up for pip serves here as well.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

HERE = Path(__file__).resolve().parent
BUNDLE = HERE.parent / "third_party"
REQUIREMENTS = HERE / "nanoarrow.txt"
PIN = re.fullmatch(
    r"nanoarrow==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})\s*",
    REQUIREMENTS.read_text(),
)
assert PIN is not None
SDIST = f"nanoarrow-{PIN['version']}.tar.gz"
C_LIBRARY = PurePosixPath(f"nanoarrow-{PIN['version']}", "subprojects", "arrow-nanoarrow")

# pip asks a source distribution's build backend for metadata, even only to download
# it; nanoarrow's would configure Meson for minutes. The answer is already inside.
BACKEND_STUB = """
import os, shutil
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    name = "nanoarrow.dist-info"
    os.makedirs(os.path.join(folder, name))
    shutil.copy("PKG-INFO", os.path.join(folder, name, "METADATA"))
    return name
"""


def download(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as stub:
        Path(stub, "mesonpy.py").write_text(BACKEND_STUB)
        path = os.pathsep.join(filter(None, [stub, os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", "--no-binary", "nanoarrow"]
        command += ["--requirement", str(REQUIREMENTS), "--dest", str(folder)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path})


def checked(sdist: Path) -> Path:
    if hashlib.sha256(sdist.read_bytes()).hexdigest() != PIN["sha256"]:
        sys.exit(f"{sdist} is not the file that {REQUIREMENTS.name} pins: delete it")
    return sdist


def bundle(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / SDIST).exists():
        download(folder)
    checked(folder / SDIST)


def extract(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        sdist = BUNDLE / SDIST
        if not sdist.exists():
            download(Path(scratch))
            sdist = Path(scratch, SDIST)
        with tarfile.open(checked(sdist)) as archive:
            for member in archive.getmembers():
                if C_LIBRARY in PurePosixPath(member.name).parents and member.isfile():
                    member.name = str(PurePosixPath(member.name).relative_to(C_LIBRARY))
                    archive.extract(member, folder)


if __name__ == "__main__":
    verb, folder = sys.argv[1:]
    {"bundle": bundle, "extract": extract}[verb](Path(folder))
