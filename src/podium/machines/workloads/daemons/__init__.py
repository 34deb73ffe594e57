"""The daemonset controller."""
