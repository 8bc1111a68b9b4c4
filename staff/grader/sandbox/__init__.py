"""The sandbox: what a process that runs a submission can't see, and can't do.

`supervise` and `enter` confine it; what they do depends on the backend, and `protections` says
what is in force with each. `choose` takes the strongest backend that works here.
"""

from staff.grader.sandbox.choose import Backend, choose
from staff.grader.sandbox.plan import Confinement, Limits

__all__ = ["Backend", "Confinement", "Limits", "choose"]
