"""DirectML's own API with ctypes alone: only what creates, compiles and runs one operator.

    layouts     the structures of d3d12.h and DirectML.h
    operators   the operators by their descriptions: a table of fields, and a description in memory made from JSON
    gpu         a Direct3D 12 device: queue, command list, fence, descriptors, buffers
    debugging   the debug layer of Direct3D 12 and its messages
    api         a DirectML device: operators created, compiled, initialized, bound and recorded
    session     a compiled operator: where its tensors are in one buffer, and how its output is read
    backend     the worker's backend: a unit is one operator, a case one dispatch

Runs inside the Windows Python, on Windows and under Wine: standard library only (session and backend also
NumPy), Python 3.8 and later.
"""
