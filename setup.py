"""The compiler of the core: on Windows clang-cl, as Microsoft's own knows no vector types."""

import shutil

from setuptools import setup
from setuptools.command.build_ext import build_ext


class BuildCore(build_ext):
    """Compile with clang-cl in place of Microsoft's compiler, if it is there."""

    def build_extensions(self):
        """Compile all extensions."""
        if self.compiler.compiler_type == "msvc":
            self.compiler.initialize()
            self.compiler.cc = shutil.which("clang-cl") or self.compiler.cc
        super().build_extensions()


if __name__ == "__main__":
    setup(cmdclass={"build_ext": BuildCore})
