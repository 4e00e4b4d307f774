"""The long-running controller and what it serves: control socket, status and metrics."""
