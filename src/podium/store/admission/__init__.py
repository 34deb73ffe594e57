"""Admission that depends on other objects: classes, limit ranges, quotas and bounds."""
