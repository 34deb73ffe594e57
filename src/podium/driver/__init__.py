"""What runs machines: in virtual time for simulations, in real time for whoever serves a cluster."""
