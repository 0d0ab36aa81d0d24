"""SCAN tasks at given settings, and copies of the official files."""

import gc
from functools import lru_cache

import pytest

from tfstudy.tasks.base import checksum
from tfstudy.tasks.scan import Scan

# Number of lines and sha256 of the sorted lines `command<TAB>actions` of the official files, repeated lines kept.
SUMS = {
    "length": (
        (16990, "b449c787a4c2e816cdb3b7fcf78e58176c17dac200a3f6304ae58d86a2bda3ab"),
        (3920, "e9bd0b06cb972a4a83fb4a6014c9d4755a6b5b2e6de74f905986a6d79f34af46"),
    ),
    "addprim_jump": (
        (14670, "e60be8fa7fd88b429d29e6feb660b5cee8c7b4fcfe686c54207f14e785c3bdb7"),
        (7706, "af971a314cdeda91bcbefc0a931252a88c56cefca71ba61b0b6f76d35471b64a"),
    ),
    "addprim_turn_left": (
        (21890, "7a87330ea22b31b5a44c33264f42ef8ebdf8bce06cd9a3f380475a366177dca5"),
        (1208, "871b1eb91236d07b343a61071fddcd9a37a50f508c0d20ac77d4887b5dec8bf0"),
    ),
    "template_jump_around_right": (
        (18528, "68c243923cfe25bc97605a91bd25d86d435a313dfc7ac8247707bd5963d552f6"),
        (1173, "1dc10f0027f064f49ca9ce72d9ff85219e711a9789bc5ad41767e9b8e184382b"),
    ),
    "template_right": (
        (15225, "26625d4787e54df29005222fae941b9ca34c8c0d9e25709132e1062c79d2c7f2"),
        (4476, "f7559991d2f94613ea2e5dce0767c37c4633d43d9efa2219f07d7afa42bcf215"),
    ),
    "template_opposite_right": (
        (15225, "91791f93dda8fe40e91e72350d48cbe4e67501ded356c71888cb874e9844c039"),
        (4476, "4403926c0eacc812de08054006fc510fb8c3441c94bcb720b4d49a917abcc5fa"),
    ),
    "template_around_right": (
        (15225, "5d47ce1eb8a7f896bdb21a3468a9cfa68854218f5370d8702a96b0fe582679f0"),
        (4476, "b64b5b28fc48416b34c038061234f09c0b92b5ebc2185e75ec18e9d002c71784"),
    ),
    "filler_num0": (
        (15225, "5d47ce1eb8a7f896bdb21a3468a9cfa68854218f5370d8702a96b0fe582679f0"),
        (1173, "1dc10f0027f064f49ca9ce72d9ff85219e711a9789bc5ad41767e9b8e184382b"),
    ),
    "filler_num1": (
        (16290, "83610a2afbd8fd10416fdcf21fb8db4fa034b629b8db3377b19a6f05c87d7e22"),
        (1173, "1dc10f0027f064f49ca9ce72d9ff85219e711a9789bc5ad41767e9b8e184382b"),
    ),
    "filler_num2": (
        (17391, "246567d75def2598683f8e2b7655450f52b0fc41e32838695b267f6086162d62"),
        (1173, "1dc10f0027f064f49ca9ce72d9ff85219e711a9789bc5ad41767e9b8e184382b"),
    ),
    "filler_num3": (
        (18528, "68c243923cfe25bc97605a91bd25d86d435a313dfc7ac8247707bd5963d552f6"),
        (1173, "1dc10f0027f064f49ca9ce72d9ff85219e711a9789bc5ad41767e9b8e184382b"),
    ),
}


@lru_cache(maxsize=16)
def scan(split="simple", seed=0, validation=0.05):
    return Scan(Scan.Config(split=split, seed=seed, validation_fraction=validation))


def sums(task):
    return tuple((len(task.examples(side)), checksum(task.examples(side))) for side in ("train", "test"))


@pytest.fixture(scope="module", autouse=True)
def without_garbage_collection():
    """Pause the garbage collector: examples form no cycles, but searching so many takes a third of the time."""
    gc.disable()
    yield
    scan.cache_clear()
    gc.enable()
