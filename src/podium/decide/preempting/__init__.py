"""Whom a pod may preempt, and where: trials, victims, and the order of candidates."""
