"""The catalogue: what students write, wrong and right, as small patches on the solution.

`mistakes/<task>.toml` holds the wrong ways, each with a sentence for the student and a question
that leads to it; `alternates/<task>.toml` holds the right ones. `patches` reads and applies them.
The suite is judged by both: every mistake must lose points, every alternate must keep them.
"""
