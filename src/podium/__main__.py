"""`python -m podium` is the command `podium`."""

from podium.app.command import main

main()
