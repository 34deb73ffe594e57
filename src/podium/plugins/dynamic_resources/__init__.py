"""DynamicResources: allocation of devices to claims."""
