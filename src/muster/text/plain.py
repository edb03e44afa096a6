"""Texts with markup as the words that a reader of the page would see, for titles of one line."""

import re

_FENCE = re.compile(r"^ {0,3}(?:```|~~~)[^\n`]*$", re.MULTILINE)
MAX_READ = 2_000  # characters: a title is at the beginning, and some of the patterns look ahead from every place
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_VOID = re.compile(r"<(?:br|hr|img|input|wbr)\b[^<>]*>", re.IGNORECASE)
_OPENING = re.compile(r"<([a-zA-Z][\w-]*)(?:\s[^<>]*)?>")
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]\n]+)\]\([^()\s]*(?:\s\"[^\"\n]*\")?\)")
_LINE = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+|>[ \t]?|[-+*][ \t]+(?:\[[ xX]\][ \t]+)?)+", re.MULTILINE)
_RULE = re.compile(r"^[ \t]{0,3}(?:[-=*_][ \t]?){3,}$", re.MULTILINE)
_STRONG = re.compile(r"(\*\*|~~|(?<!\w)__)(?=\S)([^\n]{1,200}?)(?<=\S)\1(?![\w.])")
_WEAK = re.compile(r"(?<![\w*_])([*_])(?=[^\s*_])([^*_\n]+?)(?<=\S)\1(?![\w*_])")
_CODE = re.compile(r"(?<!`)`++([^`\n]++)`++")


def plain_words(text: str) -> str:
    """Return the beginning of a text without Markdown and tags of HTML; what only looks like a tag stays."""
    text = text[:MAX_READ]
    for pattern, kept in ((_COMMENT, " "), (_VOID, " "), (_FENCE, ""), (_RULE, ""), (_LINE, "")):
        text = pattern.sub(kept, text)
    text = _without_tags(text)
    for pattern, kept in ((_IMAGE_OR_LINK, r"\1"), (_STRONG, r"\2"), (_WEAK, r"\2"), (_CODE, r"\1")):
        text = pattern.sub(kept, text)
    return text.strip()


def _without_tags(text: str) -> str:
    """Leave out tags that are closed: a lone <div> is what somebody asks about."""
    for name in {found[1] for found in _OPENING.finditer(text)}:
        if f"</{name}>".lower() in text.lower():
            text = re.sub(rf"</?{re.escape(name)}(?:\s[^<>]*)?>", "", text, flags=re.IGNORECASE)
    return text
