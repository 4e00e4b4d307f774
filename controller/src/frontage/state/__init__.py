"""The switch state: what the configuration requires, what is installed, and how to get from one to the other."""
