"""The command line: its options, its pages, and how answers are printed."""
