"""A program of chat mode: it gets the whole conversation as one JSON object, and says what it used and what it cost."""

import json
import sys

PRICE = 0.000_001  # dollars a word, which is what this service would charge


def main():
    """Read one conversation, write one answer."""
    request = json.load(sys.stdin)
    said = request["messages"][-1]["content"]
    answer = f"You said {said!r}. Tell me more!"
    words_in = sum(len(message["content"].split()) for message in request["messages"])
    words_out = len(answer.split())
    print(f"chatty: {words_in} words came in", file=sys.stderr)
    json.dump(
        {
            "text": answer,
            "usage": {"input_tokens": words_in, "output_tokens": words_out},
            "cost_usd": PRICE * (words_in + words_out),
            "session": "chatty-1",
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
