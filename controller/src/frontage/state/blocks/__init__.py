"""The entries of each P4 control, in modules named like the files in ``p4src/control``.

Every module has ``entries(config, allocation)``: a pure function to the entries that its control's tables should hold.
"""
