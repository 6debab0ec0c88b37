"""Makes `harness/model/data/directml_operators.json` and `harness/model/data/onnxruntime_kernels.json` again.

    python -m tools.refresh_directml --sdk-api DIR --windows-ai-docs DIR --directml DIR --onnxruntime DIR
    python -m tools.refresh_directml --facts DIR

The first form reads git checkouts of the public repositories (never the network); the second one YAML files
that an earlier extraction wrote, in the same structure. Only facts are taken: names, numbers, sets. Each data
file names its sources with their commits.

    checkout     a git checkout: its files at a revision
    documents    the reference pages: levels, tables of tensor support, constraints, aliasing
    structures   the members of the structures and the numbers of enumerations
    provider     what ONNX Runtime's DirectML provider registers, and the DirectML operators that its kernels create
    kernel_table docs/OperatorKernels.md: the kernels of each provider
    package      the two data files
"""
