"""One module per table or figure of a paper, the printed numbers beside ours."""
