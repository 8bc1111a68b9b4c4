"""Import the modules that submissions and tests use, in a process that will fork children."""

import beartype.claw
import einops._torch_specific
import jaxtyping
import numpy.random
import regex

__all__ = ["beartype", "einops", "jaxtyping", "numpy", "regex"]
