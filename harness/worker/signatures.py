"""Prints the signatures of the operators that the onnxruntime of this interpreter has in a domain, and in
ONNX's default domain: python signatures.py DOMAIN. It is run as a file of its own.

JSON with the release and a list of operators, in the words of ONNX's schemas; a default is an AttributeProto's bytes in
hexadecimal.
"""

import json
import sys
from typing import Any, Dict, List


def listed(*domains: str) -> Dict[str, Any]:
    """Return the text to print."""
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return {
        "onnxruntime": onnxruntime.__version__,
        "operators": [
            {
                "name": ".".join(filter(None, (each.domain, each.name))),
                "since": each.since_version,
                "inputs": [_parameter(one) for one in each.inputs],
                "outputs": [_parameter(one) for one in each.outputs],
                "types": {one.type_param_str: one.allowed_type_strs for one in each.type_constraints},
                "attributes": {
                    key: [str(one.type).split(".")[-1], one._default_value.hex(), one.required]
                    for key, one in each.attributes.items()
                },
            }
            for each in state.get_all_operator_schema()
            if each.domain in ("", *domains)
        ],
    }


def _parameter(formal: Any) -> List[Any]:
    return [formal.name, formal.typeStr, str(formal.option).split(".")[-1], formal.isHomogeneous]


if __name__ == "__main__":
    print(json.dumps(listed(*sys.argv[1:])))
