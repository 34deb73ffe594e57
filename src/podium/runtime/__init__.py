"""Runtimes of components: in virtual time for simulations, in real time for live clusters."""
