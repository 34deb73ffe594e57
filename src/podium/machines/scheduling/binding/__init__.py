"""Binding cycles: what happens between a decision and the bound pod."""
