"""State machines without input and output: observations and the time go in, actions and a deadline come out."""
