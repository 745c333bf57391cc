"""Provides the sources of nanoarrow that arrowdl builds: bundled, or pinned from pip's index.

    fetch_nanoarrow.py bundle FOLDER     put an archive of the sources into FOLDER
    fetch_nanoarrow.py extract FOLDER    unpack the sources into FOLDER

Only nanoarrow's source distribution has its C library, beside compressors and a compiler that
arrowdl does not use. It is asked for through pip, so that an index, a cache, a proxy or a
certificate set up for pip serves here as well. nanoarrow_sources.txt names the files that are
built, with their hashes: the archive has no others, and each is checked when it is read.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUNDLE = HERE.parent / "third_party"
REQUIREMENTS = HERE / "nanoarrow.txt"
PIN = re.fullmatch(
    r"nanoarrow==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})\s*",
    REQUIREMENTS.read_text(),
)
assert PIN is not None
SDIST = f"nanoarrow-{PIN['version']}.tar.gz"
ARCHIVE = f"nanoarrow-{PIN['version']}-sources.tar.gz"
C_LIBRARY = f"nanoarrow-{PIN['version']}/subprojects/arrow-nanoarrow"
HASHES = HERE / "nanoarrow_sources.txt"  # in the format of sha256sum


def pinned_sources() -> dict[str, str]:
    """Return the hash of each file, by its path in the C library."""
    lines = (line.split() for line in HASHES.read_text().splitlines())
    return {path: sha256 for sha256, path in lines}


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


def read_sources(archive: Path) -> dict[str, bytes]:
    """Return the pinned files of an archive, which is a source distribution or our own."""
    sources = {}
    with tarfile.open(archive) as content:
        for path, sha256 in pinned_sources().items():
            try:
                file = content.extractfile(f"{C_LIBRARY}/{path}")
            except KeyError:
                file = None
            data = b"" if file is None else file.read()
            if hashlib.sha256(data).hexdigest() != sha256:
                sys.exit(f"{path} of {archive} is not the file that {HASHES.name} pins: delete it")
            sources[path] = data
    return sources


def download_sources() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as scratch:
        download(Path(scratch))
        return read_sources(Path(scratch, SDIST))


def write_archive(sources: dict[str, bytes], file: Path) -> None:
    """Write equal bytes for equal sources: no time, no owner, one order."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path, data in sorted(sources.items()):
            member = tarfile.TarInfo(f"{C_LIBRARY}/{path}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    file.write_bytes(packed.getvalue())


def bundle(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / ARCHIVE).exists():
        read_sources(folder / ARCHIVE)
    else:
        write_archive(download_sources(), folder / ARCHIVE)


def extract(folder: Path) -> None:
    bundled = BUNDLE / ARCHIVE
    sources = read_sources(bundled) if bundled.exists() else download_sources()
    for path, data in sources.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


if __name__ == "__main__":
    verb, folder = sys.argv[1:]
    {"bundle": bundle, "extract": extract}[verb](Path(folder))
