"""Arrays of any library, read through DLPack without a copy, and new ones of the same library.

The package imports neither NumPy nor PyTorch: an output is made by the library that the inputs came from.
"""

import ctypes
import sys
from typing import Any, Optional, Sequence

from .library import refuse

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
READ_ONLY = 1
DTYPES = {
    (0, 8): "i8",
    (0, 32): "i32",
    (0, 64): "i64",
    (1, 8): "u8",
    (2, 16): "f16",
    (2, 32): "f32",
    (2, 64): "f64",
    (4, 16): "bf16",
    (6, 8): "bool",
    (10, 8): "e4m3",
    (12, 8): "e5m2",
}  # (DLDataTypeCode, bits)
NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "u8": "uint8",
}  # of NumPy, PyTorch and CuPy
# Types of arrays of NumPy by ml_dtypes; NumPy exports none of these by DLPack.
OF_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


WORDS = {
    **{name: word for word, name in NAMES.items()},
    **{"float64": "f64", "bool": "bool", "int32": "i32", "int64": "i64", "float8_e4m3": "e4m3"},
}


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Shape:
    """What a question needs to know of an array: shape, strides in elements, dtype word, device. It reads no memory, so a meta tensor of PyTorch,
    a jax.ShapeDtypeStruct or the extents alone (of bf16) will do."""

    __slots__ = ("owner", "shape", "strides", "dtype", "device")

    def __init__(self, name: str, owner: Any):
        extents = owner if isinstance(owner, (tuple, list)) else getattr(owner, "shape", None)
        try:
            self.shape = tuple(int(extent) for extent in extents)  # type: ignore[union-attr]
        except TypeError:
            refuse(f"{name}: a {type(owner).__name__}; an array or its extents are needed")
        strides = getattr(owner, "strides", None) or dense(self.shape)
        if callable(getattr(owner, "stride", None)):  # PyTorch's
            strides = owner.stride()
        elif hasattr(owner, "strides"):  # in bytes
            strides = tuple(step // owner.itemsize for step in strides)
        word = str(getattr(owner, "dtype", "bfloat16")).rpartition(".")[2]
        self.owner, self.strides, self.dtype = owner, tuple(strides), WORDS.get(word, word)
        try:
            self.device = tuple(owner.__dlpack_device__())
        except Exception:  # extents, and what has no memory
            self.device = (CPU, 0)

    @property
    def on_cpu(self) -> bool:
        return self.device[0] in (CPU, CUDA_HOST)


class Array:
    """What a call needs to know of one array: address, shape, strides in elements, dtype word, device. It keeps the memory alive."""

    __slots__ = ("owner", "capsule", "address", "shape", "strides", "dtype", "device", "writable")

    def __init__(self, name: str, owner: Any):
        if not hasattr(owner, "__dlpack__") or not hasattr(owner, "__dlpack_device__"):
            refuse(
                f"{name}: a {type(owner).__name__}; an array with __dlpack__ is needed (NumPy, PyTorch, CuPy)"
            )
        # PyTorch exports no tensor that requires a gradient
        self.owner = owner.detach() if hasattr(owner, "detach") else owner
        word = str(getattr(owner, "dtype", ""))
        foreign = word in OF_ML_DTYPES and module_of(owner) is sys.modules.get("numpy")
        exported = self.owner.view(f"u{owner.itemsize}") if foreign else self.owner
        self.capsule = _capsule(name, exported)
        tensor, flags = _tensor(self.capsule)
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[: tensor.ndim])
        self.strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else dense(self.shape)
        self.dtype = DTYPES.get(
            (tensor.code, tensor.bits), f"type {tensor.code} of {tensor.bits} bits"
        )
        if foreign:
            self.dtype = WORDS[word]
        self.device = (tensor.device_type, tensor.device_id)
        self.writable = not flags & READ_ONLY

    @property
    def on_cpu(self) -> bool:
        return self.device[0] in (CPU, CUDA_HOST)


def look(name: str, owner: Any) -> Any:
    """A Shape; an Array where only DLPack says the extents."""
    plain = isinstance(owner, (tuple, list)) or hasattr(owner, "shape")
    return Shape(name, owner) if plain or not hasattr(owner, "__dlpack__") else Array(name, owner)


def _capsule(name: str, owner: Any) -> Any:
    """Nothing has to be synchronised (-1): the call is enqueued on the caller's own stream, behind what made the array."""
    stream = None if owner.__dlpack_device__()[0] == CPU else -1
    try:
        try:
            return owner.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:  # a library from before DLPack 1.0
            return owner.__dlpack__(stream=stream)
    except Exception as why:  # each library has its own kind
        refuse(f"{name}: {type(owner).__module__.partition('.')[0]} does not export it: {why}")


def _tensor(capsule: Any) -> tuple[DLTensor, int]:
    """The capsule is not consumed: it frees what it holds when it goes."""
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = DLManagedTensorVersioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        return managed.tensor, managed.flags
    return DLTensor.from_address(_pointer(capsule, b"dltensor")), 0


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def same_strides(shape: Sequence[int], one: Sequence[int], other: Sequence[int]) -> bool:
    """The stride of an extent of 1 is never read."""
    return all(a == b for extent, a, b in zip(shape, one, other) if extent > 1)


def module_of(owner: Any) -> Any:
    """NumPy, PyTorch or CuPy, by the array's own type; None: a library that this package does not know."""
    name = type(owner).__module__.partition(".")[0]
    return sys.modules.get(name) if name in ("numpy", "torch", "cupy") else None


def empty(
    name: str,
    like: Array,
    shape: Sequence[int],
    dtype: str,
    strides: Optional[Sequence[int]] = None,
) -> Any:
    """A new array on the device of `like`, made by its library, with these strides (in elements, of a dense tensor in any order).

    Arrays of a library that is not known here, JAX for example, get arrays of NumPy on the cpu.
    """
    numpy = sys.modules.get("numpy")
    module: Any = module_of(like.owner) or (numpy if like.on_cpu else None)
    kind = getattr(module, NAMES.get(dtype, ""), None)
    if kind is None and module is numpy:
        kind = getattr(sys.modules.get("ml_dtypes"), NAMES.get(dtype, ""), None)
    if kind is None:
        refuse(
            f"{name}: {type(like.owner).__module__.partition('.')[0]} has no array of {dtype} that can be made here; give {name}="
        )
    strides = tuple(strides or dense(shape))
    order = sorted(range(len(shape)), key=lambda i: (shape[i] > 1, -strides[i]))
    extents = [shape[i] for i in order]
    if not same_strides(extents, dense(extents), [strides[i] for i in order]):
        refuse(f"{name}: the problem's strides {strides} leave gaps; give {name}=")
    back = [order.index(i) for i in range(len(shape))]
    if module.__name__ == "torch":
        return module.empty(extents, dtype=kind, device=like.owner.device).permute(back)
    return module.empty(extents, dtype=kind).transpose(back)


def current_stream(like: Array, stream: Any) -> Optional[int]:
    """The stream of a call: the caller's, else the current one of the library that `like` came from."""
    if like.on_cpu:
        return None
    if stream is not None:
        for attribute in ("cuda_stream", "ptr"):  # PyTorch's, CuPy's
            stream = getattr(stream, attribute, stream)
        if hasattr(stream, "__cuda_stream__"):
            stream = stream.__cuda_stream__()[1]
        return int(stream)
    module = module_of(like.owner)
    if module is None:
        refuse(
            f"stream: the current stream of {type(like.owner).__module__.partition('.')[0]} is not known; give stream="
        )
    return int(
        module.cuda.current_stream(like.device[1]).cuda_stream
        if module.__name__ == "torch"
        else module.cuda.get_current_stream().ptr
    )


def workspace(like: Array, count: int, stream: Any) -> Any:
    """Bytes that live until the work on `stream` is done. Allocators of PyTorch and CuPy reuse memory in the order of the stream that it was made on."""
    made = empty("workspace", like, [count], "u8")
    if (
        stream is not None
        and not like.on_cpu
        and getattr(module_of(like.owner), "__name__", "") == "torch"
    ):
        made.record_stream(
            sys.modules["torch"].cuda.ExternalStream(
                current_stream(like, stream), device=made.device
            )
        )
    return made
