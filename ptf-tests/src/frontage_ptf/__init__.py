"""What the packet tests share: a P4Runtime client, frames, a site to install, and second opinions on what the switch should do."""
