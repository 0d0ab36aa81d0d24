"""What the tests of the models share."""

import torch
from torch import nn

from tfstudy.models.attention import Sight
from tfstudy.models.positions import Places
from tfstudy.models.tokens import Tokens

CLOSE = {"atol": 3e-5, "rtol": 1e-4}  # float32 in another order of addition


def randomised(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.eval()


def at(queries, keys):
    """Places with loose bounds."""
    queries, keys = torch.tensor([list(queries)]), torch.tensor([list(keys)])
    return Places(queries, keys, int(queries.min() - keys.max()) - 2, int(queries.max() - keys.min()) + 3)


def sight(shapes, masks=None, places=None, **named):
    """A `Sight` without masks and positions by default."""
    nothing = [None] * len(shapes)
    return Sight(shapes, masks or nothing, places or nothing, **named)


def placed(ids, numbers):
    """One rectangle of tokens at these positions."""
    return Tokens.of(ids)._replace(numbers=(numbers,), limit=int(numbers.max()) + 1)
