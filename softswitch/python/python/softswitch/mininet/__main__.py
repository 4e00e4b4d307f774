# SPDX-License-Identifier: Apache-2.0
"""Print the path of the file for `mn --custom`.

Example: mn --custom $(python3 -m softswitch.mininet) --switch soft --link soft,bw=10 --topo single,3 --controller none --mac --arp
"""

import argparse
from pathlib import Path


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(Path(__file__).with_name("custom.py"))


if __name__ == "__main__":
    main()
