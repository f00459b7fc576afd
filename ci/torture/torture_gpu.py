"""Part gpu: part device on GPU 0, with real kernels."""

import torture_scenes as scenes
from torture_device import COLUMNS, KERNELS, MUST_BE_ZERO, NAMES, attempt, points  # noqa: F401

FEW = ("a GPU that fails", *KERNELS)  # among a few points too
SCENES = tuple(scenes.on_real_gpu(name, name not in FEW) for name in NAMES)
