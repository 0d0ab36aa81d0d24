"""YAML is read within bounds; what is beyond them is refused by name, on one line."""

import pytest

from tfstudy.config.files import MAX_BYTES, MAX_DEPTH, parse_yaml, read_yaml
from tfstudy.errors import UserError

BOMB = "a: &a [1, 1]\n" + "".join(
    f"{chr(i + 1)}: &{chr(i + 1)} [*{chr(i)}, *{chr(i)}]\n" for i in range(ord("a"), ord("z"))
)
REFUSED = {
    "[" * 3000: "deeply nested: at most 64",
    "{" * 100_000: "deeply nested",
    "- " * 3000 + "a": "deeply nested",
    "? " * 3000: "deeply nested",
    "".join(" " * i + "a:\n" for i in range(1000)): "deeply nested",
    BOMB: "at most 100,000 values",
    "[" + "1," * 100_001 + "]": "at most 100,000 values",
    "&a [*a]": "alias 'a'",
    "a: *b": "alias 'b'",
    "!!python/object/apply:os.system [ls]": "must not have tags",
    "!!int x": "must not have tags",
    "9" * 5000: "more than 40 digits",
    "0x" + "f" * 5000: "more than 40 digits",
    "a: [": "is not valid YAML",
    "\udcff": "is not valid YAML",
    "? [a]\n: b": "is not valid YAML",
    "a: 1\n---\nb: 2": "is not valid YAML",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=range(len(REFUSED)))
def test_yaml_beyond_the_bounds_is_refused_on_one_line(text, message):
    with pytest.raises(UserError, match=message) as error:
        parse_yaml(text, "the text")
    assert str(error.value).startswith("the text")
    assert len(str(error.value)) < 300
    assert "\n" not in str(error.value)


def test_a_large_file_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(100 * MAX_BYTES)
    with pytest.raises(UserError, match=r"large.yaml is too large: at most 1,048,576 bytes"):
        read_yaml(path)


def test_the_deepest_value_within_the_bounds_is_read():
    assert str(parse_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH, "x")) == "[" * MAX_DEPTH + "]" * MAX_DEPTH


def test_anchors_and_merged_sections_are_read():
    assert parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]", "x") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": 2},
        "c": [{"x": 1}, {"x": 1}],
    }


def test_a_date_is_text():
    assert parse_yaml("2020-02-30", "x") == "2020-02-30"
    assert parse_yaml("2020-02-20", "x") == "2020-02-20"


def test_a_message_about_a_file_may_name_it_by_its_role(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("[]")
    with pytest.raises(UserError, match=r"^the config must contain sections such as 'train:', but contains '\[\]'$"):
        read_yaml(path, "the config")
