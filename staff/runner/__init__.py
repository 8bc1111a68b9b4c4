"""The runner runs the suite many times, each time in a child of one preloaded process."""
