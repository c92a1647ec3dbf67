"""Puts jax-lockstep.pth, which Python reads as it starts, beside the package."""

import pathlib

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPy(build_py):
    def run(self):
        super().run()
        name = "jax-lockstep.pth"
        self.copy_file(f"python/{name}", str(pathlib.Path(self.build_lib) / name))


setup(cmdclass={"build_py": BuildPy})
