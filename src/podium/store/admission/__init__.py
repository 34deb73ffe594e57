"""What is filled in and refused because of other objects: classes, ranges, quotas, bounds."""
