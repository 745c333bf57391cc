"""Code that runs in a process forked from one that has imported torch.

Each test of a device has a process of its own, and `import torch` took nearly all of its time.
The process imports arrowdl itself, and ends as any other does.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

_SERVERS = 2  # of as many environments at a time
_PROGRAM = """
from helpers.fork_server import serve
code = serve()
if code is not None:
    exec(compile(code, "<string>", "exec"))
"""


class ForkServer:
    """A process that forks.

    Parameters
    ----------
    env : mapping of str to str
        The environment of all processes.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # a line that was read ahead would not be waited for
            # A thread of OpenBLAS would be there when the process forks.
            env={**env, "OPENBLAS_NUM_THREADS": "1"},
        )

    def run(self, code: str, timeout: float) -> tuple[int, str, str]:
        """Return the status of a forked process, what it wrote to stdout, and to stderr.

        Raises
        ------
        TimeoutError
            It was killed after `timeout` seconds.
        """
        assert self._process.stdin is not None
        with tempfile.TemporaryDirectory() as folder:
            request = json.dumps({"code": code, "folder": folder})
            self._process.stdin.write(f"{request}\n".encode())
            pid = self._read(300)
            try:
                status = self._read(timeout)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._read(300)
                raise
            return status, *(Path(folder, name).read_text() for name in ("stdout", "stderr"))

    def _read(self, timeout: float) -> int:
        stdout = self._process.stdout
        assert stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if not selector.select(timeout):
                raise TimeoutError(f"a process did not end within {timeout:g} s")
        line = stdout.readline()
        assert line, "the process that forks has ended"
        return int(line)

    def close(self) -> None:
        self._process.communicate()


_servers: OrderedDict[frozenset[tuple[str, str]], ForkServer] = OrderedDict()


def run_forked(code: str, env: Mapping[str, str], timeout: float = 300.0) -> tuple[int, str, str]:
    """Run `code` in a forked process with the environment `env`; see `ForkServer.run`."""
    env = {name: value for name, value in env.items() if name != "PYTEST_CURRENT_TEST"}
    key = frozenset(env.items())
    if key not in _servers:
        _servers[key] = ForkServer(env)
    _servers.move_to_end(key)
    while len(_servers) > _SERVERS:
        _servers.popitem(last=False)[1].close()
    return _servers[key].run(code, timeout)


def serve() -> str | None:
    """Fork for each request; return its code in the new process, and None at the end."""
    import torch  # noqa: F401

    assert len(os.listdir("/proc/self/task")) == 1, "only a process without threads may fork"
    gc.freeze()  # a collection would copy the pages that the processes share
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            for number, name in enumerate(("stdin", "stdout", "stderr")):
                path = os.devnull if number == 0 else Path(request["folder"], name)
                file = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT)
                os.dup2(file, number)
                os.close(file)
            return str(request["code"])
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None
