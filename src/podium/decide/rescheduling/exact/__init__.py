"""The best placement that moves could reach, by a mixed-integer program: a measure for what is planned otherwise."""
