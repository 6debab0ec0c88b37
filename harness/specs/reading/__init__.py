"""Spec files read: YAML with the line of each part, the format as types, ONNX's and the format's rules, literal
values; and cases written as a spec."""
