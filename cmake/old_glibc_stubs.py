"""Writes stand-ins of the system's libraries that have only the symbols of an old glibc.

A shared library that is linked with them asks for no newer version of a symbol, so that it loads
where glibc and libstdc++ are older than those of the machine that built it. Each stand-in has the
names, versions and SONAME of a library of this system, without its code: glibc keeps every version
that it has published, so the newest one that is old enough is what a link on the old system takes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

# The newest versions that the tag manylinux_2_28 allows (PEP 600, auditwheel's policy).
NEWEST = {"GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "CXXABI_TM": (1,), "GCC": (7, 0, 0)}

# glibc 2.34 moved these into libc.so.6: a library of before has them from their own.
MOVED = {
    "libpthread.so.0": re.compile(r"pthread_|sem_"),
    "libdl.so.2": re.compile(r"dl(open|close|sym|vsym|error|addr1?|info|mopen)$"),
}

ROW = re.compile(r"^\s*\d+: \S+\s+\S+ (\w+)\s+\w+\s+\w+\s+(?!UND)\S+ (\S+?)@@?(\S+)", re.MULTILINE)


def split_version(version: str) -> tuple[str, tuple[int, ...]] | None:
    """`GLIBC_2.28` as ("GLIBC", (2, 28)); None for GLIBC_PRIVATE and the like."""
    name, _, numbers = version.rpartition("_")
    if not re.fullmatch(r"\d+(\.\d+)*", numbers):
        return None
    return name, tuple(int(number) for number in numbers.split("."))


def read_symbols(readelf: str, library: str, glibc: tuple[int, ...]) -> dict[str, tuple[str, str]]:
    """The newest version of each symbol that is old enough, and whether it is thread-local."""
    table = subprocess.run(
        [readelf, "--wide", "--dyn-syms", library], check=True, capture_output=True, text=True
    ).stdout
    newest: dict[str, tuple[tuple[int, ...], str, str]] = {}
    for kind, name, version in ROW.findall(table):
        parts = split_version(version)
        if parts is None or parts[1] > {**NEWEST, "GLIBC": glibc}.get(parts[0], ()):
            continue
        newest[name] = max(newest.get(name, ((), "", "")), (parts[1], version, kind))
    return {name: (version, kind) for name, (_, version, kind) in newest.items()}


def write_stub(compiler: str, soname: str, symbols: dict[str, tuple[str, str]], out: Path) -> None:
    lines: list[str] = []
    versions: dict[str, list[str]] = {}
    for name, (version, kind) in sorted(symbols.items()):
        versions.setdefault(version, []).append(name)
        if kind == "TLS":
            lines.append(f'.section .tbss,"awT",%nobits\n.type {name}, %tls_object')
        else:
            lines.append(f".text\n.type {name}, %function")
        lines.append(f".globl {name}\n{name}: .zero 8\n.size {name}, 8")
    source, script = out / f"{soname}.s", out / f"{soname}.map"
    source.write_text("\n".join(lines) + '\n.section .note.GNU-stack,"",%progbits\n')
    nodes = [f"{node} {{ global: {'; '.join(names)}; }};" for node, names in versions.items()]
    script.write_text("\n".join(nodes) + "\n")
    options = ["-shared", "-nostdlib", f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}"]
    subprocess.run([compiler, *options, "-o", out / soname, source], check=True)


def find_loader(readelf: str, libc: str) -> str:
    """The dynamic linker, which libc.so.6 needs; it has the function of thread-local variables."""
    table = subprocess.run([readelf, "-d", libc], check=True, capture_output=True, text=True).stdout
    (name,) = re.findall(r"\(NEEDED\).*\[(ld-linux.*)\]", table)
    return str(name)


def find_library(compiler: str, name: str) -> str:
    done = subprocess.run(
        [compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
    )
    path = done.stdout.strip()
    if not Path(path).is_absolute():
        raise SystemExit(
            f"{compiler} has no {name}: an old glibc needs GCC with its static libstdc++"
        )
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("glibc", help="the version to link for, such as 2.28")
    parser.add_argument("out", type=Path)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--readelf", default="readelf")
    options = parser.parse_args()
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    glibc = tuple(int(number) for number in options.glibc.split("."))

    def read(name: str) -> dict[str, tuple[str, str]]:
        return read_symbols(options.readelf, find_library(options.compiler, name), glibc)

    loader = find_loader(options.readelf, find_library(options.compiler, "libc.so.6"))
    names = ("libc.so.6", loader, "libm.so.6", "libstdc++.so.6")
    libraries = {name: read(name) for name in names}
    for soname, pattern in MOVED.items():
        moved = [name for name in libraries["libc.so.6"] if pattern.match(name)]
        libraries[soname] = {name: libraries["libc.so.6"].pop(name) for name in moved}
    for soname, symbols in libraries.items():
        write_stub(options.compiler, soname, symbols, out)
    # What -lc, -lm and -lstdc++ find. The rest of libstdc++ is linked from its static library.
    rest = find_library(options.compiler, "libc_nonshared.a")
    static = find_library(options.compiler, "libstdc++.a")
    for name, files in {
        "libc.so": [out / "libc.so.6", rest, *(out / soname for soname in (*MOVED, loader))],
        "libm.so": [out / "libm.so.6"],
        "libstdc++.so": [out / "libstdc++.so.6", static],
    }.items():
        parts = [f"AS_NEEDED ( {file} )" if ".so" in str(file) else str(file) for file in files]
        (out / name).write_text(f"GROUP ( {' '.join(parts)} )\n")


if __name__ == "__main__":
    main()
