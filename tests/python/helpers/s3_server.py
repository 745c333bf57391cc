"""An S3-compatible server, moto, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import Any

KEYS = {"access_key": "AKIAOFATEST", "secret_key": "secretofatest1"}


class S3Server:
    """moto on a free port; it keeps objects in memory.

    Attributes
    ----------
    port : int
    """

    def __init__(self, port: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        lines = []
        for line in self._process.stderr:
            lines.append(line)
            if found := re.search(r"Running on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise RuntimeError(f"moto did not start:\n{''.join(lines)}")
        # What it logs of each request must not fill the pipe.
        self._drain = subprocess.Popen(
            ["cat"], stdin=self._process.stderr, stdout=subprocess.DEVNULL
        )
        self._process.stderr.close()

    def open(self) -> Any:
        """The file system, past any proxy, to write to."""
        import pyarrow.fs as fs

        return fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
            **KEYS,
        )

    def put(self, files: dict[str, bytes]) -> None:
        """Write objects; the first part of a path is the bucket."""
        store = self.open()
        for bucket in {path.split("/")[0] for path in files}:
            store.create_dir(bucket)
        for path, data in files.items():
            with store.open_output_stream(path) as file:
                file.write(data)

    def kill(self) -> None:
        """End it without notice."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._drain.wait()


def make_options(port: int) -> dict[str, Any]:
    """The storage_options of a server, or a proxy, at a port of this machine."""
    return {"endpoint_override": f"http://127.0.0.1:{port}", "region": "us-east-1", **KEYS}
