"""Text for XML: whatever it holds, it can be read again."""

from xml.etree.ElementTree import fromstring

from hypothesis import given
from hypothesis import strategies as st

from muster.reporting.xml_text import attribute, attributes, text


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_any_text_is_good_xml(value: str) -> None:
    root = fromstring(f"<suite name={attribute(value)}>{text(value)}</suite>")
    plain = all(character == "\n" or character.isprintable() for character in value)
    assert not plain or ((root.text or "") == value and root.attrib["name"] == value)


def test_attributes_without_a_value_are_left_out() -> None:
    assert attributes({"name": "a<b", "line": None, "tests": 3}) == ' name="a&lt;b" tests="3"'
