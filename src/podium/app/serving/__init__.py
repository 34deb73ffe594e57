"""`podium up`: a control plane that people and programs reach over HTTP."""
