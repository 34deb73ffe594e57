"""`podium up`: a control plane that users and programs reach over HTTP."""
