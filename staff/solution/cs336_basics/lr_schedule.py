"""The learning-rate schedule: a linear warm-up, half a cosine, then a constant minimum."""

import math


def lr_cosine_schedule(
    it: int,
    max_learning_rate: float,
    min_learning_rate: float,
    warmup_iters: int,
    cosine_cycle_iters: int,
) -> float:
    """Return the learning rate of iteration `it`, as for LLaMA (Touvron et al. 2023, section 2.3).

    T_w is `warmup_iters`, T_c is `cosine_cycle_iters`, and 0 ≤ T_w ≤ T_c:

        it < T_w           max · it / T_w
        T_w ≤ it < T_c     min + ½ (1 + cos(π (it − T_w) / (T_c − T_w))) (max − min)
        T_c ≤ it           min

    Args:
        it: the iteration, counted from 0.
        max_learning_rate: the rate at the end of the warm-up.
        min_learning_rate: the rate at the end of the cosine, and after it.
        warmup_iters: number of iterations of the warm-up.
        cosine_cycle_iters: the iteration at which the cosine ends, counted from 0 as `it` is.
    """
    if it < warmup_iters:
        return max_learning_rate * it / warmup_iters
    if it >= cosine_cycle_iters:
        return min_learning_rate
    progress = (it - warmup_iters) / (cosine_cycle_iters - warmup_iters)
    height = (1 + math.cos(math.pi * progress)) / 2
    return min_learning_rate + height * (max_learning_rate - min_learning_rate)
