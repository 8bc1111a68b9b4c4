"""The learning rate over a run: up in a straight line, down along half a cosine, then level."""


def lr_cosine_schedule(
    it: int,
    max_learning_rate: float,
    min_learning_rate: float,
    warmup_iters: int,
    cosine_cycle_iters: int,
) -> float:
    """The learning rate of iteration `it`, as used for LLaMA (Touvron et al. 2023, section 2.3).

    With T_w = `warmup_iters` and T_c = `cosine_cycle_iters`, T_w ≤ T_c, either of which may be 0:

        it < T_w           max · it / T_w
        T_w ≤ it < T_c     min + ½ (1 + cos(π (it − T_w) / (T_c − T_w))) (max − min)
        T_c ≤ it           min

    Args:
        it: the iteration, counted from 0.
        max_learning_rate: reached at the end of the warm-up.
        min_learning_rate: reached at the end of the cosine, and kept.
        warmup_iters: number of iterations of the warm-up.
        cosine_cycle_iters: the iteration at which the cosine ends, counted from 0 as `it` is.
    """
    raise NotImplementedError("lr_schedule: handout §3.3")
