"""Answers as one self-contained HTML file: what is drawn is data, the drawing is in `page/`."""

from podium.app.reporting.pictures import report

__all__ = ["report"]
