"""From scratch: what a submission uses of what it was to build itself.

`static` reads the code, `guard` watches it run, `findings` puts both together and says which tasks
are concerned. `rules` is what they share. The names come from the rubric.
"""
