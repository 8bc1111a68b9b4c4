"""The worker is the process that runs a submission; the modules here start it and talk with it.

A *zygote* is a process that has imported PyTorch and forks workers (`zygote`). A *worker* imports
one submission and answers requests (`worker`). `wire` is the format of requests and replies, and
`remote` is the bridge that sends the requests.
"""
