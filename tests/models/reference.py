"""What the tests of the models share."""

from torch import nn

CLOSE = {"atol": 3e-5, "rtol": 1e-4}  # float32 in another order of addition


def randomised(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.eval()
