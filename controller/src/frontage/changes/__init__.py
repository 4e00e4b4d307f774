# SPDX-License-Identifier: Apache-2.0
"""Changes of the configuration: the verbs of operators, the journal, and plans."""
