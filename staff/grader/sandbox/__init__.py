"""The sandbox confines the process that runs a submission.

`supervise` and `enter` confine a worker. What they do depends on the backend, and the backend's
`protections` name what is in force. `choose` returns the strongest backend that works here.
"""

from staff.grader.sandbox.choose import Backend, choose
from staff.grader.sandbox.plan import Confinement, Limits

__all__ = ["Backend", "Confinement", "Limits", "choose"]
