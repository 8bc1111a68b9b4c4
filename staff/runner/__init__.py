"""The suite, many times: jobs, and the process that forks a child for each."""
