"""Environment variables of the preloaded processes, which fork children."""

ENVIRONMENT = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "0",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TOP_PAD_": "16777216",
}
"""Settings of OpenMP and of `malloc`. Children share the cores, so a thread that waits must not
spin. A child soon needs freed memory again, so `malloc` keeps it."""
