"""The environment of the processes that fork."""

ENVIRONMENT = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "0",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TOP_PAD_": "16777216",
}
"""Children share the cores, so a thread that waits must not spin; and what a child freed it will
need again, so it isn't given back."""
