"""The official clients as tests use them: strict, and without tries of their own."""

import ssl

import anthropic
import openai
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

# The servers of tests speak plain HTTP, and each client would load the certificates of the machine, which takes longer
# than most tests.
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def anthropic_client(url: str, *, key: str = "k", strict: bool = True) -> AsyncAnthropic:
    """Return a client of Anthropic; close it, or use it with `async with`."""
    http = anthropic.DefaultAsyncHttpxClient(verify=_NO_CERTIFICATES)
    return AsyncAnthropic(
        api_key=key, base_url=url, max_retries=0, _strict_response_validation=strict, http_client=http
    )


def openai_client(url: str, *, key: str = "k", strict: bool = True) -> AsyncOpenAI:
    """Return a client of OpenAI; close it, or use it with `async with`."""
    http = openai.DefaultAsyncHttpxClient(verify=_NO_CERTIFICATES)
    return AsyncOpenAI(api_key=key, base_url=url, max_retries=0, _strict_response_validation=strict, http_client=http)
