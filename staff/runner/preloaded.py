"""What submissions and tests import: loaded once, in the process that forks them all."""

import beartype.claw
import einops._torch_specific
import jaxtyping
import numpy.random
import regex

__all__ = ["beartype", "einops", "jaxtyping", "numpy", "regex"]
