"""Provides the third-party sources that arrowdl builds: bundled, or pinned from pip's index.

    fetch_sources.py bundle NAME FOLDER     put an archive of the sources into FOLDER
    fetch_sources.py extract NAME FOLDER    unpack the sources into FOLDER

NAME is nanoarrow or dlpack. They are asked for through pip, so that an index, a cache, a proxy or
a certificate set up for pip serves here as well. NAME.txt pins the package that has them.
NAME_sources.txt names the files that are built, with their hashes: our archive has no others, and
each is checked when it is read.
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
import zipfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUNDLE = HERE.parent / "third_party"


@dataclass(frozen=True)
class Package:
    """A package of pip's index, and what a build takes of it."""

    folder: str  # where its archive has the files, with a place for the version
    options: tuple[str, ...]  # of `pip download`
    setting: str  # of CMake: a folder that already has the files


PACKAGES = {
    # Only the source distribution has the C library, beside compressors and a compiler.
    "nanoarrow": Package(
        "nanoarrow-{version}/subprojects/arrow-nanoarrow",
        ("--no-build-isolation", "--no-binary", "nanoarrow"),
        "FETCHCONTENT_SOURCE_DIR_NANOARROW",
    ),
    # Any of its wheels has the header, so that each platform takes the same one, and builds none.
    "dlpack": Package(
        "tvm_ffi/include",
        (
            *("--only-binary", ":all:", "--platform", "manylinux_2_28_x86_64"),
            *("--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"),
        ),
        "ARROWDL_DLPACK_INCLUDE_DIR",
    ),
}

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


def read_pin(name: str) -> tuple[str, str]:
    """Return the package that has the sources, and its version."""
    pin = re.fullmatch(
        r"(\S+)==(\S+) --hash=sha256:[0-9a-f]{64}\s*", (HERE / f"{name}.txt").read_text()
    )
    assert pin is not None
    return pin[1], pin[2]


def name_archive(name: str) -> str:
    return "{}-{}-sources.tar.gz".format(*read_pin(name))


def name_folder(name: str) -> str:
    return PACKAGES[name].folder.format(version=read_pin(name)[1])


def pinned_sources(name: str) -> dict[str, str]:
    """Return the hash of each file, by its path; the list has the format of sha256sum."""
    lines = (HERE / f"{name}_sources.txt").read_text().splitlines()
    return {path: sha256 for sha256, path in map(str.split, lines)}


def download(name: str, folder: Path) -> Path:
    """Let pip download the package, and check its hash. Return the file."""
    package, version = read_pin(name)
    with tempfile.TemporaryDirectory() as stub:
        Path(stub, "mesonpy.py").write_text(BACKEND_STUB)
        path = os.pathsep.join(filter(None, [stub, os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += [*PACKAGES[name].options, "--dest", str(folder)]
        command += ["--requirement", str(HERE / f"{name}.txt")]
        done = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": path})
    if done.returncode:
        sys.exit(
            f"pip cannot download {package} {version}, which has the sources of {name}. Without a "
            f"network, build arrowdl's source distribution, which contains them, or give "
            f"-D{PACKAGES[name].setting}=DIR."
        )
    (file,) = folder.iterdir()
    return file


def read_files(archive: Path, paths: list[str]) -> dict[str, bytes]:
    """Return the files of an archive; those that it lacks are empty."""
    files = dict.fromkeys(paths, b"")
    with zipfile.ZipFile(archive) if archive.suffix == ".whl" else tarfile.open(archive) as content:
        for path in paths:
            try:
                if isinstance(content, zipfile.ZipFile):
                    files[path] = content.read(path)
                elif file := content.extractfile(path):
                    files[path] = file.read()
            except KeyError:
                continue
    return files


def read_sources(name: str, archive: Path) -> dict[str, bytes]:
    """Return the pinned files of an archive, which is the package or our own."""
    pinned = pinned_sources(name)
    folder = name_folder(name)
    files = read_files(archive, [f"{folder}/{path}" for path in pinned])
    sources = {path: files[f"{folder}/{path}"] for path in pinned}
    for path, data in sources.items():
        if hashlib.sha256(data).hexdigest() != pinned[path]:
            sys.exit(f"{path} of {archive} is not the file that {name}_sources.txt pins: delete it")
    return sources


def download_sources(name: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as scratch:
        return read_sources(name, download(name, Path(scratch)))


def write_archive(folder: str, sources: dict[str, bytes], file: Path) -> None:
    """Write equal bytes for equal sources: no time, no owner, one order."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path, data in sorted(sources.items()):
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    file.write_bytes(packed.getvalue())


def bundle(name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / name_archive(name)
    if archive.exists():
        read_sources(name, archive)
    else:
        write_archive(name_folder(name), download_sources(name), archive)


def extract(name: str, folder: Path) -> None:
    bundled = BUNDLE / name_archive(name)
    sources = read_sources(name, bundled) if bundled.exists() else download_sources(name)
    for path, data in sources.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


if __name__ == "__main__":
    verb, name, folder = sys.argv[1:]
    {"bundle": bundle, "extract": extract}[verb](name, Path(folder))
