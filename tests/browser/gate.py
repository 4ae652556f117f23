"""What stands between a browser and the site, and can be shut."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2


class Gate:
    """Stands before the site: passes what pages ask, but for sockets, until it is shut; and may bring
    another worker."""

    def __init__(self, site: str) -> None:
        self.is_open = True
        self.status: tuple[int, str] | None = None  # said in the site's place, and of what type
        self.worker_version: str | None = None
        gate = self
        self.upstream = upstream = httpx2.Client(base_url=site, timeout=60)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._pass_on("GET")

            def do_PATCH(self) -> None:
                self._pass_on("PATCH")

            def do_POST(self) -> None:
                if self.path.startswith("/accounts/"):  # forms; a line by HTTP would never end
                    self._pass_on("POST")
                else:
                    self.send_error(501)

            def _pass_on(self, method: str) -> None:
                if not gate.is_open:
                    self.connection.close()
                    return
                if gate.status is not None:
                    status, content_type = gate.status
                    self.send_response(status)
                    self.send_header("content-type", content_type)
                    self.send_header("content-length", "7")
                    self.end_headers()
                    self.wfile.write(b"unready")
                    return
                # Not Origin: the site would find that it is not its own.
                names = ("Cookie", "Accept", "Content-Type", "X-CSRFToken")
                headers = {n: self.headers[n] for n in names if n in self.headers}
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                try:
                    answer = upstream.request(method, self.path, headers=headers, content=body)
                except httpx2.HTTPError:  # a stream that had no end, when the test had one
                    return
                self.send_response(answer.status_code)
                for name, value in answer.headers.multi_items():
                    if name not in (
                        "content-length",
                        "content-encoding",
                        "transfer-encoding",
                        "connection",
                    ):
                        self.send_header(name, value)
                content = gate.changed(self.path, answer.content)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def changed(self, path: str, body: bytes) -> bytes:
        if path != "/service-worker.js" or self.worker_version is None:
            return body
        return re.sub(rb"vitrine-[0-9a-f]{12}", self.worker_version.encode(), body)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.upstream.close()
