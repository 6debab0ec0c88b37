"""Published facts about operators, as typed records: DirectML's reference documents, and the kernels that
ONNX Runtime registers.

    directml   DirectML's operators: numbers, members of their structures, tables of tensor support by feature level, constraints
    kernels    the kernels of ONNX Runtime's providers, and what its DirectML provider makes of an operator

They are read on demand from the JSON files of `harness/data`, which `python -m tools.refresh_directml` makes.
Nothing here was measured.
"""
