"""Answers as one self-contained HTML file: Python makes the data, the scripts in `page/` draw it."""

from podium.app.reporting.pictures import report

__all__ = ["report"]
