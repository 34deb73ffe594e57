"""The effect of rescheduling on a production trace under pressure: with it, without it, and by descheduler's rules.

`.venv/bin/python -m tools.rescheduling_study --nodes nodes.csv --pods pods.csv` simulates the same part of the openb
trace several times, and prints the tables of docs/rescheduling-study.md.
"""
