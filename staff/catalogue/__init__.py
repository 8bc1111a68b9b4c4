"""The catalogue: wrong and right ways to write the solution, as small patches on it.

`mistakes/<task>.toml` holds the wrong ways, each with a sentence for the student and a question
that leads to the cause. `alternates/<task>.toml` holds the right ones. `patches` reads and applies
them. Both judge the suite: every mistake must lose points, and every alternate must keep them.

This entry has one edit, in the first file that the rubric names for the task:

    [rmsnorm-axis-not-kept]
    sentence = "the mean loses its axis, so that the division matches tokens with features"
    nudge = "What is the shape of your mean, and which axes of x is it matched with?"
    find = "wide.square().mean(dim=-1, keepdim=True)"
    replace = "wide.square().mean(dim=-1)"

`symbol = "RMSNorm.forward"` with `body`, in place of `find` and `replace`, replaces the body of a
function. `file = "cs336_basics/config.py"` beside `find` names another file, and so does
`symbol = "cs336_basics.config:read_config"`. Several edits are written as
`[[rmsnorm-axis-not-kept.edits]]` tables.
"""
