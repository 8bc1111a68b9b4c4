"""The catalogue: what students write, wrong and right, as small patches on the solution.

`mistakes/<task>.toml` holds the wrong ways, each with a sentence for the student and a question
that leads to it; `alternates/<task>.toml` holds the right ones. `patches` reads and applies them.
The suite is judged by both: every mistake must lose points, every alternate must keep them.

An entry with one edit, here in the first file that the rubric names for the task:

    [[mistake]]
    id = "rmsnorm-axis-not-kept"
    shows = "value"
    sentence = "the mean loses its axis, and the division lines tokens up with features"
    nudge = "What is the shape of your mean, and which axes of x does it meet?"
    find = "wide.square().mean(dim=-1, keepdim=True)"
    replace = "wide.square().mean(dim=-1)"

In place of `find` and `replace`, `symbol = "RMSNorm.forward"` and `body` replace the body of a
function. Another file is named by `file = "cs336_basics/config.py"` beside `find`, or by
`symbol = "cs336_basics.config:read_config"`. Several edits stand in `[[mistake.edits]]` tables.
"""
