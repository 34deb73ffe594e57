"""Tables of answers for other programs, by the dataframe interchange protocol and by Arrow's; nothing is needed."""

from podium.app.frames.frame import Frame

__all__ = ["Frame"]
