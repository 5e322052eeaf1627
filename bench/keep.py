"""Writes what a benchmark keeps: a small record, and a small picture of it. Sweeps and single rounds stay out of the
tree once summaries have them."""

import io
import json
import re
from xml.etree import ElementTree

COLUMNS = 120
DIGITS = 9  # as pages round them, so that they read the same as before


def rounded(value):
    """A value of JSON with floats of DIGITS digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


def laid_out(value, room=COLUMNS, depth=0):
    """JSON whose lines are filled: a list or an object that fits on a line isn't broken."""
    line = json.dumps(value)
    if len(line) <= room - depth or not isinstance(value, (dict, list)) or not value:
        return line
    if isinstance(value, dict):
        heads, entries, ends = [json.dumps(key) + ": " for key in value], list(value.values()), "{}"
    else:
        heads, entries, ends = [""] * len(value), value, "[]"
    lines = [""]
    for head, entry in zip(heads, entries):
        text = head + laid_out(entry, room - len(head) - 1, depth + 1) + ","
        fits = "\n" not in text and "\n" not in lines[-1] and depth + 2 + len(lines[-1]) + len(text) <= room
        if lines[-1] and fits:
            lines[-1] += " " + text
        else:
            lines.append(text)
    within = "\n".join(" " * (depth + 1) + line for line in lines[1:])
    return ends[0] + "\n" + within[:-1] + "\n" + " " * depth + ends[1]


def record(path, found, raw=()):
    """Writes a record as JSON, without the entries at its top that `raw` names."""
    small = {key: value for key, value in found.items() if key not in raw}
    path.write_text(laid_out(rounded(small)) + "\n", encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------------------
# Pictures
# ---------------------------------------------------------------------------------------------------------------------

SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
HREF, PATH, GROUP = f"{{{LINK}}}href", f"{{{SVG}}}path", f"{{{SVG}}}g"


def unwrapped(element):
    """Puts the content of groups that say nothing in their place."""
    for child in list(element):
        unwrapped(child)
        if child.tag == GROUP and not child.attrib:
            at = list(element).index(child)
            element[at:at + 1] = list(child)


def joined(element):
    """Makes one path of the straight lines of one kind that lie in a group, such as a grid's."""
    kinds = {}
    for child in list(element):
        joined(child)
        if child.tag == PATH and re.fullmatch(r"M \S+ \S+ L \S+ \S+", child.get("d")) and not child.get("id"):
            kind = tuple(sorted((key, value) for key, value in child.attrib.items() if key != "d"))
            if kind in kinds:
                kinds[kind].set("d", kinds[kind].get("d") + " " + child.get("d"))
                element.remove(child)
            else:
                kinds[kind] = child


def renamed(root):
    """Short names for what is referred to, none for the rest, and each style once."""
    text = ElementTree.tostring(root, encoding="unicode")
    used = set(re.findall(r"#(\w+)", text))
    names, styles = {}, {}
    for element in root.iter():
        name = element.attrib.pop("id", None)
        if name in used:
            element.set("id", names.setdefault(name, f"i{len(names)}"))
        style = element.attrib.pop("style", None)
        if style:
            element.set("class", styles.setdefault(style, f"c{len(styles)}"))
    for element in root.iter():
        for key in (HREF, "clip-path"):
            if key in element.attrib:
                element.set(key, re.sub(r"#(\w+)", lambda found: "#" + names.get(found[1], found[1]), element.get(key)))
    sheet = next(root.iter(f"{{{SVG}}}style"))
    sheet.text += "".join(f".{name}{{{style}}}" for style, name in styles.items())


def smaller(svg):
    """An SVG of matplotlib's that looks the same: numbers have one digit behind the point, and nothing stands twice."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", LINK)
    root = ElementTree.fromstring(svg)
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        if element.tag != f"{{{SVG}}}style" and not (element.text or "").strip():
            element.text = None
        element.tail = None
        for key in ("d", "x", "y", "width", "height", "transform"):
            if key in element.attrib:
                short = re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), element.get(key))
                element.set(key, " ".join(short.split()))
    renamed(root)
    unwrapped(root)
    joined(root)
    ElementTree.indent(root, "")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def picture(figure, path):
    """Writes a figure of matplotlib's as SVG, its text as text."""
    from matplotlib import pyplot, rc_context

    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "shortlist"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    path.write_text(smaller(text.getvalue()), encoding="utf-8")
    pyplot.close(figure)
