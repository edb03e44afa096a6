"""Replies that are checked against the schema of their request while everything else goes on."""

import asyncio
import json

from muster.app.base.schemas import JsonSchemas
from muster.domain.call import Reply
from tests.text.test_cpu_limit import unevaluated


async def test_an_answer_that_takes_long_to_check_keeps_nobody_waiting() -> None:
    value, schema = {"a": 1, "b": 2}, unevaluated(8)
    reply = Reply(text=json.dumps(value))
    checking = asyncio.create_task(JsonSchemas().parse(reply, schema))
    rounds = 0
    while not checking.done():
        await asyncio.sleep(0.001)
        rounds += 1
    assert rounds > 3
    assert checking.result().data == value


async def test_an_answer_that_holds_no_json_or_does_not_fit_says_why() -> None:
    schema = {"type": "object", "required": ["n"]}
    said = {text: (await JsonSchemas().parse(Reply(text=text), schema)) for text in ("none", "{}", '{"n": 1}')}
    assert "holds no JSON" in said["none"].data_error
    assert "does not fit the schema" in said["{}"].data_error
    assert (said['{"n": 1}'].data, said['{"n": 1}'].data_error) == ({"n": 1}, "")
