# SPDX-License-Identifier: Apache-2.0
"""Export of the packet samples that the switch sends to the controller (`samples.p4`), to sFlow and INT collectors."""
