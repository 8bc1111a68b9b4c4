"""Import what submissions and tests use, once, in a process that forks children."""

import beartype.claw
import einops._torch_specific
import jaxtyping
import numpy.random
import regex

__all__ = ["beartype", "einops", "jaxtyping", "numpy", "regex"]
