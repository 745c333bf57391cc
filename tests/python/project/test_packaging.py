"""What a user installs: the wheel, the sdist, the C++ package inside."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import warnings
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]


def call(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """A command without what this test's own environment would lend it."""
    lent = {"PYTHONPATH", "LD_PRELOAD", "CMAKE_PREFIX_PATH"}
    env = {name: value for name, value in os.environ.items() if name not in lent}
    env.update(options.pop("env", {}))  # type: ignore[call-overload]
    return subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=env,
        **options,  # type: ignore[call-overload]
    )


def run(*command: str | Path, **options: object) -> str:
    """Output of a command that has to succeed."""
    done = call(*command, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


def no_network() -> list[str]:
    """What to put before a command so that it has no network; a warning if nothing does."""
    for isolate in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if shutil.which("unshare") and call(*isolate, "true").returncode == 0:
            return isolate
    message = "`unshare --net` is not permitted: only pip's index was off, not the network"
    warnings.warn(message, stacklevel=2)
    return []


def build_sdist(folder: Path) -> Path:
    build = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", build, folder, cwd=ROOT)
    return next(folder.glob("arrowdl-*.tar.gz"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as a user builds it, of the sdist; ARROWDL_WHEEL names one that is built."""
    if built := os.environ.get("ARROWDL_WHEEL"):
        return Path(built).resolve()
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, build_sdist(folder))
    return next(folder.glob("arrowdl-*.whl"))


@pytest.fixture(scope="session")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    run(python, "-m", "pip", "install", "--no-index", wheel)
    return python


@pytest.fixture(scope="session")
def installed(python: Path) -> Path:
    return Path(run(python, "-c", "import arrowdl; print(arrowdl.__path__[0])").strip())


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_sdist(tmp_path_factory.mktemp("sdist"))


def test_wheel_is_small_and_whole(wheel: Path) -> None:
    assert wheel.stat().st_size < 2_000_000
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {name.removeprefix("arrowdl/") for name in names if name.startswith("arrowdl/")}
    assert {
        "__init__.py",
        "_core.pyi",
        "py.typed",
        "include/arrowdl/to_dlpack.hpp",
        "include/dlpack/dlpack.h",
        "include/nanoarrow/nanoarrow.h",
        "lib/libarrowdl_core.a",
        "lib/cmake/arrowdl/arrowdlConfig.cmake",
    } <= package
    licenses = {Path(name).name for name in names if ".dist-info/licenses/" in name}
    assert licenses == {"LICENSE", "NOTICE"}
    folders = {name.split("/")[0] for name in names}
    assert all(name == "arrowdl" or name.endswith(".dist-info") for name in folders), folders


def test_wheel_needs_nothing_at_run_time(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    assert metadata.get_all("Requires-Dist", []) == []
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_import_brings_in_no_framework_and_no_driver(python: Path) -> None:
    program = """
import json, sys
before = set(sys.modules)
import arrowdl
maps = open("/proc/self/maps").read() if sys.platform == "linux" else ""
print(json.dumps([sorted(set(sys.modules) - before), sorted(sys.modules), maps.split()]))
"""
    new, modules, maps = json.loads(run(python, "-I", "-c", program))
    third_party = {name.split(".")[0] for name in new} - sys.stdlib_module_names
    assert third_party == {"arrowdl"}
    frameworks = {"torch", "jax", "numpy", "pyarrow", "polars", "tensorflow", "pandas"}
    assert not frameworks & set(modules)
    libraries = {Path(entry).name for entry in maps if ".so" in entry}
    driver = re.compile(r"lib(cuda|cudart|nvrtc|amdhip|hsa|sycl|ze_loader|OpenCL|arrow|torch)")
    assert [name for name in libraries if driver.match(name)] == []


def test_module_exports_its_init_function_only(installed: Path) -> None:
    module = next(installed.glob("_core.*.so"))
    symbols = [line.split()[-1] for line in run("nm", "-D", "--defined-only", module).splitlines()]
    assert symbols == ["PyInit__core"]


def test_module_needs_the_system_libraries_only(installed: Path) -> None:
    module = next(installed.glob("_core.*.so"))
    needed = re.findall(r"\(NEEDED\).*\[(.+?)\]", run("readelf", "-d", module))
    system = re.compile(r"(lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)|ld-linux.*)\.so\.\d+")
    assert [name for name in needed if not system.fullmatch(name)] == []


def test_cpp_program_finds_and_uses_the_installed_package(installed: Path, tmp_path: Path) -> None:
    # site-packages is what scikit-build-core puts on CMake's path: no entry point needed.
    site_packages = installed.parent
    source = ROOT / "examples/cpp"
    run("cmake", "-S", source, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={site_packages}")
    run("cmake", "--build", tmp_path)
    assert "zero-copy: yes" in run(tmp_path / "round_trip")


def test_sdist_carries_what_a_build_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {"LICENSE", "NOTICE", "README.md", "CMakeLists.txt", "pyproject.toml"} <= names
    bundled = [name for name in names if name.startswith("third_party/")]
    assert len(bundled) == 1
    assert re.fullmatch(r"third_party/nanoarrow-[\d.]+\.tar\.gz", bundled[0])
    assert not [name for name in names if name.startswith(("build/", ".venv", ".git/"))]


OFFLINE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}


@pytest.fixture
def unpacked(sdist: Path, tmp_path: Path) -> Path:
    """The tree of the sdist."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    return next(tmp_path.glob("arrowdl-*"))


def test_sdist_builds_without_a_network(unpacked: Path, tmp_path: Path) -> None:
    """Only what CMake does may need a network: the wheel that the tests use is the sdist's."""
    build = tmp_path / "build"
    command: list[str | Path] = ["cmake", "-S", unpacked, "-B", build, "-G", "Ninja"]
    command += [f"-DPython_EXECUTABLE={sys.executable}", "-DSKBUILD_PROJECT_NAME=arrowdl"]
    run(*no_network(), *command, env=OFFLINE)
    compiled = json.loads((build / "compile_commands.json").read_text())
    assert len(compiled) > 100
    assert [entry["file"] for entry in compiled if not Path(entry["file"]).exists()] == []
    run(*no_network(), "cmake", "--build", build, "--target", "arrowdl_nanoarrow", env=OFFLINE)


@pytest.mark.parametrize("root", [".", "subprojects/arrow-nanoarrow"])
def test_nanoarrow_is_taken_from_a_folder(unpacked: Path, tmp_path: Path, root: str) -> None:
    """An unpacked sdist of nanoarrow, or its C library alone, which a checkout looks like."""
    archive = next(unpacked.glob("third_party/nanoarrow-*.tar.gz"))
    with tarfile.open(archive) as content:
        content.extractall(tmp_path, filter="data")
    archive.unlink()
    nanoarrow = next(tmp_path.glob("nanoarrow-*")) / root
    build = tmp_path / "build"
    command: list[str | Path] = ["cmake", "-S", unpacked, "-B", build, "-DARROWDL_PYTHON=OFF"]
    command += [f"-DPython_EXECUTABLE={sys.executable}"]
    command += [f"-DFETCHCONTENT_SOURCE_DIR_NANOARROW={nanoarrow}"]
    run(*no_network(), *command, env=OFFLINE)
    compiled = [
        entry["file"] for entry in json.loads((build / "compile_commands.json").read_text())
    ]
    theirs = [Path(file) for file in compiled if file.endswith(".c")]
    assert len(theirs) == 5
    assert all(file.exists() and nanoarrow.resolve() in file.parents for file in theirs)
    assert not list(build.glob("_deps/nanoarrow-src/*"))


@pytest.mark.parametrize("route", ["extract a bundled", "bundle a present", "download"])
def test_another_nanoarrow_than_the_pinned_is_refused(route: str, tmp_path: Path) -> None:
    """The archive is sound and has what is looked for, but it is not the one."""
    shutil.copytree(ROOT / "cmake", tmp_path / "cmake")
    name = (ROOT / "cmake/nanoarrow.txt").read_text().split()[0].replace("==", "-")
    third_party = tmp_path / "third_party"
    elsewhere = tmp_path / "elsewhere"
    source = tmp_path / "array.c"
    source.write_text("#error tampered with\n")
    archive = (elsewhere if route == "download" else third_party) / f"{name}.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as content:
        content.add(source, f"{name}/subprojects/arrow-nanoarrow/src/nanoarrow/common/array.c")
        content.add(source, f"{name}/PKG-INFO")
    out = third_party if route == "bundle a present" else tmp_path / "out"
    command = [sys.executable, tmp_path / "cmake/fetch_nanoarrow.py", route.split()[0], out]
    if route == "download":
        command[2] = "extract"
    done = call(*command, env={**OFFLINE, "PIP_FIND_LINKS": str(elsewhere)})
    assert done.returncode != 0
    refusal = "DO NOT MATCH THE HASHES" if route == "download" else "is not the file that"
    assert refusal in done.stdout
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


PROBE = """
#include <Python.h>
PyMODINIT_FUNC PyInit__core() {
  static PyModuleDef definition{};
  definition.m_name = "_core";
  PyObject* module = PyModule_Create(&definition);
  PyModule_AddStringConstant(module, "answer", ANSWER);
  return module;
}
"""


def test_editable_install_rebuilds_on_import(unpacked: Path, tmp_path: Path) -> None:
    """Our pyproject.toml and CMake files, around a module that compiles in a second."""
    for folder in ("cpp/src", "cpp/bindings", "python/arrowdl"):
        shutil.rmtree(unpacked / folder)
        (unpacked / folder).mkdir()
    (unpacked / "cpp/src/sync").mkdir()
    for name in ("core", "sync/small"):  # a file of each target
        (unpacked / f"cpp/src/{name}.cpp").write_text("int arrowdl_core() { return 0; }\n")
    module = unpacked / "cpp/bindings/module.cpp"
    module.write_text(PROBE.replace("ANSWER", '"before"'))
    (unpacked / "python/arrowdl/__init__.py").write_text("from arrowdl._core import answer\n")

    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps"]
    run(*install, "--target", site, "-e", unpacked, env=OFFLINE)
    # -S: of site-packages only this folder, or the .pth file of our own install would be first.
    program = f"import site; site.addsitedir({str(site)!r}); import arrowdl; print(arrowdl.answer)"
    ask = [sys.executable, "-I", "-S", "-c", program]
    assert run(*ask).split()[-1] == "before"
    # cmake --install takes files of the same second for equal; the real module links for longer.
    built = max(path.stat().st_mtime for path in unpacked.glob("build/dev/_core.*.so"))
    time.sleep(max(0.0, built + 2 - time.time()))
    module.write_text(PROBE.replace("ANSWER", '"after"'))
    assert run(*ask).split()[-1] == "after"
