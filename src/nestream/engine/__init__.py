"""The columnar matcher: a program and ordered batches in, batches of matches out; it knows no plans.

Every operation works on whole arrays. An event is four numbers: its position `pos` (its rank in the input),
`low` (the position of the first event with its time, so that x comes before y exactly if `pos[x] < low[y]`),
`reach` (the first position that fits in a window that ends with it), and its row in the event buffer.
"""
