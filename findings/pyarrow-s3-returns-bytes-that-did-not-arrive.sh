#!/usr/bin/env bash
# pyarrow's S3 file returns as many bytes as were asked for although fewer have arrived.
#
# Versions: pyarrow 26.0.1, Python 3.11, Linux. A server (here on the loopback address) answers a request for 20,000 bytes by 206
# and Content-Length: 10000, and 10,000 bytes: an answer that RFC 9110 (15.3.7) allows, which is shorter
# than the range and says so. So does one whose chunks end early.
# Seen: read_at(20_000, 1_000) returns 20,000 bytes and raises nothing. The second half is what the
# memory had before, so it differs from run to run and may be right by chance. readinto() says 20,000
# and leaves the rest of the buffer as it was. read_buffer() returns 20,000 bytes as well.
# (An answer whose connection breaks before Content-Length is reached raises OSError.)
# Output seen:
#   length: read_at 20000 bytes, readinto said 20000, of which 10000 were written
#   chunks: read_at 20000 bytes, readinto said 20000, of which 10000 were written
# arrowdl reads into memory with random marks, and looks whether they are still there
# (python/arrowdl/loader/_storage/marked_reads.py).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==26.0.1
cat > "$folder/run.py" <<'PYTHON'
import http.server
import threading

import pyarrow.fs as fs

DATA = bytes(i * 7 % 251 for i in range(100_000))
how = "whole"


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()

    def do_GET(self):
        start, stop = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        data = DATA[start : stop + 1]
        if how != "whole":
            data = data[: len(data) // 2]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{start + len(data) - 1}/{len(DATA)}")
        if how == "chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))
        else:
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
client = fs.S3FileSystem(
    endpoint_override=f"127.0.0.1:{server.server_port}",
    scheme="http",
    region="us-east-1",
    access_key="of-a-test",
    secret_key="of-a-test",
)
with client.open_input_file("bucket/key") as file:
    assert file.read_at(20_000, 1_000) == DATA[1_000:21_000]
    for how in ("length", "chunks"):
        data = file.read_at(20_000, 1_000)
        assert data[:10_000] == DATA[1_000:11_000]
        buffer = bytearray(b"\xff" * 20_000)  # a value that the data do not have
        file.seek(1_000)
        said = file.readinto(buffer)
        written = 20_000 - buffer.count(255)
        print(f"{how}: read_at {len(data)} bytes, readinto said {said}, of which {written} were written")
        assert (len(data), said, written) == (20_000, 20_000, 10_000)
PYTHON
timeout 60 "$folder/venv/bin/python" "$folder/run.py"
