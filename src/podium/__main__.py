"""`python -m podium` is the command `podium`."""

from podium.app.console.command import main

main()
