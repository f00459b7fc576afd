"""One cuDNN on one device."""

import ctypes
import functools
import os
import pathlib
import weakref
from typing import Any, Optional, Union

from . import abi
from .library import Error, call, library, refuse, shared, text


def description(name: str) -> pathlib.Path:
    """A description of a GPU: a path, or the name of one that is installed ("h100-sxm")."""
    if name.endswith(".json") or os.sep in name:
        found: Optional[pathlib.Path] = pathlib.Path(name)
    else:
        found = shared(
            f"wheel:devices/{name}.json",
            f"prefix:share/fattn/devices/{name}.json",
            f"source:devices/{name}.json",
        )
    if found is None or not found.is_file():
        raise Error(
            "environment",
            f'device {name!r}: "cpu", a GPU\'s number, or a description (its path, or a name such as "h100-sxm")',
        )
    return found


class Context:
    """One cuDNN on one device (fattn_context_create).

    device     "cpu"; the number of a GPU; a description of a GPU, by path or name: it decides and compiles, and runs nothing
    cudnn_dir  folder of libcudnn.so.9, as `facts cudnn path 9.27.0` prints it; None: the cuDNN that this process has mapped already, PyTorch's for example.
    cudnn      A version ("9.27.0") or a build's name, instead of cudnn_dir. The program facts finds it, and installs it if it is not here.
    nvrtc      Path of libnvrtc.so.N, which cuDNN below 9.21 needs. With cudnn, facts finds that too.
    driver     path of libcuda.so.1; None: the system's, and for a described device the driver without a device
    threads    of the cpu backend; 0: all

    A process holds one cuDNN: a second context with another cudnn_dir is refused.
    Ownership  plans keep what they need: a context may go before its plans. Threads: any.
    Errors     Error with status "environment": a library or the device is missing or refused. cuDNN's set of three libraries needs
               CUDNN_LIB_CONFIG=GRAPH_JIT_ONLY in the environment, which this module does not set.
    """

    def __init__(
        self,
        device: Union[str, int] = "cpu",
        cudnn_dir: Optional[str] = None,
        *,
        cudnn: Optional[str] = None,
        nvrtc: Optional[str] = None,
        driver: Optional[str] = None,
        threads: int = 0,
    ):
        kind = "CPU" if device == "cpu" else "GPU" if isinstance(device, int) else "DESCRIBED"
        options = abi.fattn_context_options(
            struct_size=ctypes.sizeof(abi.fattn_context_options),
            device_kind=abi.CONSTANTS[f"FATTN_DEVICE_{kind}"],
            threads=threads,
        )
        if cudnn is not None:
            if cudnn_dir is not None:
                refuse(f"cudnn={cudnn!r} and cudnn_dir={cudnn_dir!r}: give one of them")
            cudnn_dir, found = _build(cudnn)
            nvrtc = nvrtc or found
        if isinstance(device, int):
            options.ordinal = device
        elif kind == "DESCRIBED":
            options.device_json = description(os.fspath(device)).read_bytes()
            driver = driver or _null_driver()
        for field, value in (("cudnn_dir", cudnn_dir), ("nvrtc", nvrtc), ("driver", driver)):
            if value is not None:
                setattr(options, field, os.path.abspath(value).encode())
        handle = ctypes.c_void_p()
        call("fattn_context_create", ctypes.byref(handle), ctypes.byref(options))
        self.device, self.handle = device, handle
        self.plans: dict[Any, Any] = {}  # of fattn.attention, by problem
        self.info = self._info()
        weakref.finalize(self, library().fattn_context_destroy, handle).atexit = False

    def _info(self) -> dict[str, Any]:
        info = abi.fattn_context_info(struct_size=ctypes.sizeof(abi.fattn_context_info))
        call("fattn_context_info_get", self.handle, ctypes.byref(info))
        names = [field[0] for field in info._fields_]
        values = {
            name: getattr(info, name) for name in names if name not in ("struct_size", "reserved")
        }
        return {
            name: text(value) if isinstance(value, bytes) else value
            for name, value in values.items()
        }

    @property
    def kind(self) -> str:
        """What computes: "cpu", "gpu" or "described"."""
        if self.device == "cpu":
            return "cpu"
        if isinstance(self.device, int):
            return "gpu"
        return "described"

    def libraries(self) -> list[str]:
        """Paths of the cuDNN, NVRTC, cuBLASLt and driver libraries that are mapped now."""
        mapped = (abi.fattn_library * 256)()
        count = library().fattn_context_libraries(self.handle, mapped, len(mapped))
        return [text(one.path) for one in mapped[: min(count, len(mapped))]]

    def verify(self) -> None:
        """Proves that every cuDNN library of the process came from cudnn_dir. Raises Error with status "environment" otherwise."""
        call("fattn_context_verify", self.handle)

    def __repr__(self) -> str:
        version = self.info["cudnn_version"]
        if not version:
            return "<fattn.Context cpu>"
        return f"<fattn.Context {self.device}: {self.info['device_name']}, sm_{self.info['sm']}, cuDNN {version // 10000}.{version // 100 % 100}.{version % 100}>"


def _build(version: str) -> tuple[str, Optional[str]]:
    """The folder of a build, and the NVRTC that it needs."""
    from .case import facts  # it needs problems, which need this module

    status, said, why = facts("cudnn", "install", version)
    if status != 0 or not said.strip():
        raise Error("environment", why or f"cudnn={version!r}: facts names no build")
    _, folder, nvrtc = said.splitlines()[-1].split("\t")
    return folder, nvrtc if nvrtc.startswith("/") else None


def _null_driver() -> Optional[str]:
    found = shared(
        "wheel:bin/nulldriver/libcuda.so.1",
        "lib:fattn/nulldriver/libcuda.so.1",
        "build:bin/nulldriver/libcuda.so.1",
        "bundle:bin/nulldriver/libcuda.so.1",
    )
    return str(found) if found else None


@functools.cache
def default_context(device: Union[str, int]) -> Context:
    """The context that calls without `context=` share: one for the cpu and one for each GPU, with the cuDNN that the process has mapped."""
    return Context(device)
