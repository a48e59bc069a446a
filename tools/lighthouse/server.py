"""The site on localhost as a static host would send it: compressed, over connections that last."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

COMPRESSED = (".html", ".css", ".js", ".ipynb")  # pictures and fonts are compressed already


@lru_cache
def compressed(path: Path) -> bytes:
    """A file as gzip packs it; packed once, so that no measurement waits for it again."""
    return gzip.compress(path.read_bytes(), mtime=0)


class Handler(SimpleHTTPRequestHandler):
    """Answers with the files of one folder, compressed where the browser takes that."""

    protocol_version = "HTTP/1.1"

    def send_head(self) -> BytesIO | None:
        """Send the head of an answer; returns what follows it, as the class above asks for."""
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        takes_gzip = "gzip" in self.headers.get("Accept-Encoding", "")
        if path.suffix not in COMPRESSED or not path.is_file() or not takes_gzip:
            return super().send_head()
        body = compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return BytesIO(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: the table is what is read."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine; gives its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
