"""The environment of the processes that fork."""

PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
"""Children share the cores, so a thread that waits must not spin."""
