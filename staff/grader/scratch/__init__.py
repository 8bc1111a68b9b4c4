"""Find the ready-made functions that a submission uses for what it had to build from scratch.

`static` reads the submission's code, and `guard` watches it while it runs. `findings` combines
their results and names the tasks concerned. `rules` resolves the forbidden names, which the rubric
lists.
"""
