"""Our HTTP/1.1 client: connections, requests, responses, server-sent events."""
