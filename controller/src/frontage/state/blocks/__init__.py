# SPDX-License-Identifier: Apache-2.0
"""The entries of each P4 control, in modules named like the files in ``p4src/control``.

Each module lists its ``TABLES``. Its ``entries`` returns the entries that these tables should hold, and takes the parts of the
configuration that the control needs.
"""
