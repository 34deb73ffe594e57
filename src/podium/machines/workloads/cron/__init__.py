"""The cronjob controller."""
