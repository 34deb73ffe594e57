"""The rescheduling policies, one idea of a good placement in each file, and the parts that they share."""
