"""The structures of d3d12.h and DirectML.h that one operator needs, in the layout of 64-bit Windows."""

from __future__ import annotations

from ctypes import Structure, c_int32, c_uint16, c_uint32, c_uint64, c_void_p


class HeapProperties(Structure):
    """D3D12_HEAP_PROPERTIES."""

    _fields_ = [(name, c_uint32) for name in ("kind", "cpu_page", "pool", "creation_node", "visible_node")]


class ResourceDesc(Structure):
    """D3D12_RESOURCE_DESC."""

    _fields_ = [
        ("dimension", c_uint32),
        ("alignment", c_uint64),
        ("width", c_uint64),
        ("height", c_uint32),
        ("depth", c_uint16),
        ("mip_levels", c_uint16),
        *((name, c_uint32) for name in ("format", "sample_count", "sample_quality", "layout", "flags")),
    ]


class Transition(Structure):
    """D3D12_RESOURCE_BARRIER of the type TRANSITION."""

    _fields_ = [
        ("kind", c_uint32),
        ("flags", c_uint32),
        ("resource", c_void_p),
        ("subresource", c_uint32),
        ("before", c_uint32),
        ("after", c_uint32),
    ]


class BufferTensorDesc(Structure):
    """DML_BUFFER_TENSOR_DESC."""

    _fields_ = [
        ("data_type", c_int32),
        ("flags", c_int32),
        ("dimension_count", c_uint32),
        ("sizes", c_void_p),
        ("strides", c_void_p),
        ("total_bytes", c_uint64),
        ("alignment", c_uint32),
    ]


class TypedDesc(Structure):
    """DML_TENSOR_DESC, DML_OPERATOR_DESC and DML_BINDING_DESC: a type and what it describes."""

    _fields_ = [("kind", c_int32), ("desc", c_void_p)]


class BindingProperties(Structure):
    """DML_BINDING_PROPERTIES."""

    _fields_ = [("descriptors", c_uint32), ("temporary_bytes", c_uint64), ("persistent_bytes", c_uint64)]


class BindingTableDesc(Structure):
    """DML_BINDING_TABLE_DESC."""

    _fields_ = [("dispatchable", c_void_p), ("cpu", c_uint64), ("gpu", c_uint64), ("descriptors", c_uint32)]


class BufferBinding(Structure):
    """DML_BUFFER_BINDING."""

    _fields_ = [("buffer", c_void_p), ("offset", c_uint64), ("size", c_uint64)]
