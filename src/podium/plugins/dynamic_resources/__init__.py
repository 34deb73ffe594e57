"""DynamicResources: pods get the devices that they claim."""
