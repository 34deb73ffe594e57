"""The session of `podium use`: a process per user that has read a cluster and answers questions about it."""
