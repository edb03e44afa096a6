"""A tiny service: it answers a POST with JSON. Start it with `python3 app.py`; another port is its argument."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

PORT = 8321


class Chat(BaseHTTPRequestHandler):
    """Answers a question with the number of its words, which it looked up with a tool of its own."""

    def do_POST(self):
        """Answer one question."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        words = len(asked["question"].split())
        looked_up = {"name": "count_words", "arguments": {"text": asked["question"]}, "result": str(words)}
        self._send({"result": {"text": f"That were {words} words.", "tools": [looked_up]}, "dollars": 0.0002})

    def _send(self, answer):
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    """Listen on loopback until somebody stops it."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else PORT
    with HTTPServer(("127.0.0.1", port), Chat) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}/chat", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
