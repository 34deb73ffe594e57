"""A cluster in virtual time: scenarios, controllers, kubelets, traces and history around the real scheduler."""
