"""Trees of settings: read from YAML within bounds, merged, flattened, shown with explanations, and read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfstudy import models
from tfstudy.config.resolve import resolve
from tfstudy.config.schema import RunConfig, annotated, to_yaml
from tfstudy.config.trees import flatten, parse_yaml, unflatten
from tfstudy.errors import UserError

REFUSED = {
    "[" * 3000: "deeply nested: at most 64",
    "{" * 100_000: "deeply nested",
    "".join(" " * i + "a:\n" for i in range(1000)): "deeply nested",
    "a: &a [1]\nb: *a": r"must not have aliases, but has '\*a'",
    "!!python/object/apply:os.system [ls]": "must not have tags",
    "0x" + "f" * 5000: "more than 40 digits",
    "a: [": "is not valid YAML",
    "\udcff": "is not valid YAML",
    "? [a]\n: b": "is not valid YAML",
    "a: 1\n---\nb: 2": "is not valid YAML",
}


def test_yaml_beyond_the_bounds_is_refused_on_one_line():
    for text, message in REFUSED.items():
        with pytest.raises(UserError, match=message) as error:
            parse_yaml(text, "the text")
        assert str(error.value).startswith("the text")
        assert len(str(error.value)) < 300
        assert "\n" not in str(error.value)


@given(st.dictionaries(st.sampled_from(["a", "b.c", "b.d", "e.f.g"]), st.integers() | st.just({}), min_size=1))
def test_unflatten_is_the_inverse_of_flatten(flat):
    assert flatten(unflatten(flat)) == flat


def config(arch: str, **sections) -> RunConfig:
    return resolve({"task": "scan", "arch": arch, **sections})


@pytest.mark.parametrize("arch", models.names())
def test_a_config_that_was_shown_or_written_reads_back_as_the_same(arch):
    run = config(arch, train={"learning_rate": 1e-9}, data={"root": "Zürich: b # c"})
    assert max(map(len, annotated(run).splitlines())) <= 80
    assert "# float > 0, changed from 0.001: highest" in " ".join(annotated(run).split())
    for text in (annotated(run), to_yaml(run)):
        assert resolve(parse_yaml(text, "it")) == run
