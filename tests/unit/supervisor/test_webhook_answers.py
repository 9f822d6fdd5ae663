"""A webhook is another system's: its answer holds no alert up."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

from seamline.model.protocol.alert import AlertKind, AlertStatement
from seamline.supervisor.alert_notification import post_webhook

STATEMENT = AlertStatement(AlertKind.LAG, "", True, "5 records", datetime(2026, 3, 1, tzinfo=UTC))


class EndlessAnswer(BaseHTTPRequestHandler):
    """Takes an alert, and goes on answering until nobody listens."""

    def do_POST(self) -> None:
        """Answer 200, and more."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x" * 65_536)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def test_an_answer_without_an_end_is_not_read() -> None:
    """The status says that the alert was taken; the body would fill memory, or hold the look at the stream up."""
    server = HTTPServer(("127.0.0.1", 0), EndlessAnswer)
    serving = threading.Thread(target=server.handle_request)
    serving.start()
    url = f"http://127.0.0.1:{server.server_port}/"
    posting = threading.Thread(target=post_webhook, args=(url, "orders", STATEMENT), daemon=True)
    posting.start()
    posting.join(20)
    ended = not posting.is_alive()
    if ended:
        serving.join()
        server.server_close()
    assert ended
