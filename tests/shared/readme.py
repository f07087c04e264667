"""README.md: its first install command and its code blocks.

    python tests/shared/readme.py

runs the blocks in order in one namespace, as a reader does who types them. It needs no package but
those that the install command brings.
"""

import re
from pathlib import Path

PATH = Path(__file__).parents[2] / "README.md"
README = PATH.read_text(encoding="utf-8")


def command(mark):
    """The lines of the shell block that follows a comment with this text."""
    return re.findall(rf"<!-- {mark} -->\n```sh\n(.*?)```", README, re.DOTALL)[0].splitlines()


def blocks():
    """The Python blocks, in order."""
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def run():
    """Run the blocks and return the names that they define."""
    names = {}
    for block in blocks():
        exec(compile(block, PATH.name, "exec"), names)
    return names


if __name__ == "__main__":
    run()
