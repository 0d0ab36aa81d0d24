"""SVG files in a quarter of their size: text as text, coordinates to a tenth of a point, each style written once."""

import re
from hashlib import sha256
from xml.etree import ElementTree as ET

SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
FONTS = "'DejaVu Sans', Verdana, sans-serif"  # Verdana is as wide
NUMERIC = ("d", "x", "y", "points", "transform", "width", "height", "viewBox")  # attributes of coordinates
FINE, COARSE = re.compile(r"(\.\d\d)\d+"), re.compile(r"(\.\d)\d+|\.0\b")  # the former for marks, which are small
COMMAND = re.compile(r"\s*([A-Za-z])\s*")  # of a path, such as L for a line
CLIP = re.compile(r'(<clipPath id="|clip-path="url\(#)([^")]+)')
NO_ROTATION = re.compile(r"rotate\(-?0 [^)]*\)")


def compact_svg(text: str) -> str:
    """Return an SVG that looks the same, with a `class` for each `style` and without what is not drawn.

    Texts are kept as they are; ids are kept where something may refer to them.
    """
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", LINK)
    root = ET.fromstring(text)  # noqa: S314 (matplotlib wrote it)
    classes: dict[str, str] = {}
    marks = {element for defs in root.iter(f"{{{SVG}}}defs") for element in defs.iter()}
    for element in root.iter():
        _shorten(element, classes, FINE if element in marks else COARSE)
    style = next(root.iter(f"{{{SVG}}}style"))
    style.text = (style.text or "") + "".join(f".{name}{{{rules}}}" for rules, name in classes.items())
    return ET.tostring(root, encoding="unicode") + "\n"


def numbered_clips(text: str, salt: str) -> str:
    """Return an SVG of matplotlib with clip paths named by their order, and by `salt` to be unlike those of others.

    Matplotlib names them by all digits of their coordinates, of which the last ones differ between processes.
    """
    names = {
        found: "p" + sha256(f"{salt}{number}".encode()).hexdigest()[:10]
        for number, found in enumerate(re.findall(r'<clipPath id="([^"]+)"', text))
    }
    return CLIP.sub(lambda match: match[1] + names[match[2]], text)


def _rounded(match: re.Match[str]) -> str:
    return "" if match[1] in (None, ".0") else match[1]


def _shorten(element: ET.Element, classes: dict[str, str], decimals: re.Pattern[str]) -> None:
    """Shorten the attributes of an element, and move its style to `classes`."""
    if element.tag == f"{{{SVG}}}g":
        element.attrib.pop("id", None)  # of groups, to which nothing refers
    for name in NUMERIC:
        if value := element.get(name):
            element.set(name, decimals.sub(_rounded, value))
    if path := element.get("d"):
        element.set("d", " ".join(COMMAND.sub(r"\1", path).split()))
    if NO_ROTATION.fullmatch(element.get("transform", "")):
        del element.attrib["transform"]
    if style := element.attrib.pop("style", ""):
        rules = re.sub(r"\s*([:;])\s*", r"\1", style.replace("'DejaVu Sans'", FONTS))
        element.set("class", classes.setdefault(rules, f"c{len(classes)}"))
    if element.tag != f"{{{SVG}}}text" and not (element.text or "").strip():
        element.text = None
    if not (element.tail or "").strip():
        element.tail = None
