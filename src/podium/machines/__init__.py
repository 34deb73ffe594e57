"""Sans-I/O state machines: events and the time go in, actions and the next deadline come out."""
