"""The sandbox: what a process that runs a submission can't see, and can't do.

`confine` is the one method; what it does depends on the backend, and `protections` says what is
in force with each. `choose` takes the strongest backend that works here.
"""

from staff.grader.sandbox.choose import Backend, choose
from staff.grader.sandbox.confine import Confinement, Limits, enter, supervise

__all__ = ["Backend", "Confinement", "Limits", "choose", "enter", "supervise"]
