"""For people who test their own controllers, operators and plugins."""
