"""Checks XML against the part of XML Schema that our schema of JUnit files uses."""

import re
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

XS = "{http://www.w3.org/2001/XMLSchema}"
TYPES = {
    "xs:string": re.compile(r".*", re.DOTALL),
    "xs:decimal": re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)"),
    "xs:nonNegativeInteger": re.compile(r"\d+"),
    "xs:dateTime": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?"),
}


class Schema:
    """A schema that is read from a file."""

    def __init__(self, path: Path) -> None:
        root = ElementTree.parse(path).getroot()
        self._elements = {element.attrib["name"]: element for element in root.findall(f"{XS}element")}

    def validate(self, text: str) -> Element:
        """Give the root of a document that is valid; raises AssertionError with the first thing that is not."""
        root = ElementTree.fromstring(text.encode())
        self._element(root)
        return root

    def _element(self, element: Element) -> None:
        assert element.tag in self._elements, f"<{element.tag}> is not declared"
        declared = self._elements[element.tag]
        shape = declared.find(f"{XS}complexType")
        if shape is None:
            assert not element.attrib, f"<{element.tag}> has attributes"
            assert not len(element), f"<{element.tag}> holds elements"
            return
        self._attributes(element, shape)
        group = shape.find(f"{XS}sequence")
        names = "".join(f"{child.tag};" for child in element)
        pattern = "" if group is None else _pattern(group)
        assert re.fullmatch(pattern, names), f"<{element.tag}> may not hold {names}"
        if shape.get("mixed") != "true":
            loose = "".join([element.text or "", *(child.tail or "" for child in element)])
            assert not loose.strip(), f"<{element.tag}> holds text: {loose!r}"
        for child in element:
            self._element(child)

    def _attributes(self, element: Element, shape: Element) -> None:
        declared = {attribute.attrib["name"]: attribute for attribute in shape.findall(f"{XS}attribute")}
        for name, attribute in declared.items():
            assert name in element.attrib or attribute.get("use") != "required", f"<{element.tag}> lacks {name}"
        for name, value in element.attrib.items():
            assert name in declared, f"<{element.tag}> may not have {name}"
            assert TYPES[declared[name].attrib["type"]].fullmatch(value), f"{element.tag}/{name} may not be {value!r}"


def _pattern(particle: Element) -> str:
    """Write what may stand inside an element as a pattern over the names of its children."""
    if particle.tag == f"{XS}element":
        inner = re.escape(f"{particle.attrib['ref']};")
    else:
        inner = ("|" if particle.tag == f"{XS}choice" else "").join(_pattern(part) for part in particle)
    least, most = particle.get("minOccurs", "1"), particle.get("maxOccurs", "1")
    return f"(?:{inner}){{{least},{'' if most == 'unbounded' else most}}}"
