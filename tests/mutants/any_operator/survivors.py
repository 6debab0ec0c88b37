"""Mistakes that no case can show, by operator and name, each with the reason."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple


class Survivor(NamedTuple):
    """Mistakes of operators (a glob) whose names match a pattern in full."""

    operators: str
    pattern: str
    because: str


SURVIVORS = (
    Survivor("*", "(to|dtype|output_dtype|output_datatype) (ignored|always .*)", "the graph states the type of the output"),
    Survivor("*", "stash_type (ignored|always .*)", "float32 in every case: the bound holds for any wider type"),
    Survivor("Attention", "softmax_precision (ignored|always .*)", "the bound holds for any wider type"),
    Survivor("TensorScatter", "mode always 'circular'", "what fits does not wrap"),
    Survivor("*LinearAttention", "chunk_size (ignored|always .*)", "a hint that decides no result"),
    Survivor("*", "kernel_shape ignored", "it follows from the shape of W, or must be given"),
    Survivor("*", "hidden_size ignored", "it follows from the shape of R"),
    Survivor("QuantizeLinear", "precision (ignored|always .*)", "the bound holds for any wider type"),
    Survivor("com.microsoft.SkipSimplifiedLayerNormalization", "output 1", "the document does not say which mean is saved"),
    Survivor("Reduce*", "axes (read )?from its end", "axes are a set"),
    Survivor("*queeze", "axes (read )?from its end", "axes are a set"),
    Survivor("MeanVarianceNormalization", "axes from its end", "axes are a set"),
    Survivor("Dropout", "(seed|ratio|training_mode) .*", "nothing is dropped in inference"),
    Survivor("Shape", "data .*elements?.*|data read .*", "the elements do not matter"),
    Survivor("Shape", "rank 0|elements from the .*|the last row", "a shape has no element, or at most nine in one row"),
    Survivor("Size", "data .*elements?.*|data read .*", "the elements do not matter"),
    Survivor("EyeLike", "input .*elements?.*|input read .*", "the elements do not matter"),
    Survivor("CastLike", "target_type (with .*|read .*)", "the elements do not matter"),
    Survivor("CastLike", "(input|target_type) of string .*", "ONNX does not say how numbers are written"),
    Survivor("NonMaxSuppression", ".* (read|with) .*", "tensors of one element"),
    Survivor("QLinearMatMul", ".*_(scale|zero_point) (read|with) .*", "tensors of one element where ONNX says what more mean"),
    Survivor("com.microsoft.DynamicQuantizeLSTM", "[WR]_zero_point read by columns", "the zero points of all columns are one number"),
    Survivor("MatMulInteger", "b_zero_point read by columns", "ONNX says nothing of a zero point for each column of a stack"),
    Survivor("TopK", "K (read|with) .*", "a tensor of one element"),
    Survivor("TopK", "sorted ignored", "the order that is not asked for is any"),
    Survivor("Einsum", "an initializer", "the inputs of its cases are all read in a run"),
    Survivor("ReduceL2", "data of u?int.*", "ONNX does not say what becomes of a result that is no integer"),
    Survivor("ReduceLogSum*", "data of u?int.*", "ONNX does not say what becomes of a result that is no integer"),
    Survivor("ReduceMean", "data of u?int.*", "ONNX does not say what becomes of a result that is no integer"),
    Survivor("Erf", "input of u?int.*", "ONNX does not say what becomes of a result that is no integer"),
    Survivor("OneHot", "depth of .*", "depth is an int64 in nearly every case"),
    Survivor("OneHot", "depth (read|with) .*", "a tensor of one element"),
    Survivor("Resize", "X of .* in version 10|roi of .*", "cases of version 10 have five types; roi has the type of scales"),
    Survivor("NonZero", "X of string .*|rank 0", "ONNX does not say which text is 0; a scalar has no coordinate"),
    Survivor("Col2Im", "input of (string|bool) .*", "ONNX does not say what their sum is"),
    Survivor("Trilu", "input of string .*", "ONNX does not say which text is 0"),
    Survivor("Unique", "X of bfloat16 .*", "NumPy has no order of bfloat16"),
    Survivor("Upsample", "mode ignored|X of bool .*", "cases name the mode where it decides; a mean of booleans is not defined"),
    Survivor("Range", "static shapes|the last row", "inputs are scalars, the output is a vector"),
    Survivor("*Window", "the last row", "the output is a vector"),
    Survivor("RMSNormalization", "stash_type ignored", "float32 in every case"),
    Survivor("SequenceLength", r"input_sequence.* (with|read) .*", "the elements do not matter"),
    Survivor("SequenceLength", "rank 0|elements from the .*|the last row", "a length is one element"),
    Survivor("SplitToSequence", "input of bfloat16 in version 24", "no operator takes such a tensor out of a sequence"),
    Survivor("SplitToSequence", "output (30[1-9]|3[1-9].|[4-9]..|1...)", "one case alone has so many parts"),
    Survivor("StringNormalizer", "stopwords from its end", "stop words are a set"),
    Survivor("StringNormalizer", "locale (ignored|always .*)", "what a locale means is the machine's"),
    Survivor("StringNormalizer", "X read by columns", "there is one row"),
    Survivor("QLinear*", "float32 with (in|out)puts of .*", "a result of 8 bits hides the digits of its scales"),
    Survivor("com.microsoft.Q[LG]*", "float32 with (in|out)puts of .*", "a result of 8 bits hides the digits of its scales"),
    Survivor("QuantizeLinear", "float32 with inputs of 11 digits", "a result of 8 bits hides the digits of its scale"),
    Survivor("com.microsoft.Q*Attention", "float32 with inputs of .*", "its float32 inputs are scales of 8-bit numbers"),
    Survivor("*LayerNormalization", "float64 with .*", "stash_type is float32 in every case"),
    Survivor("*RMSNormalization", "float64 with .*", "stash_type is float32 in every case"),
    Survivor("GroupNormalization", "float64 with .*", "stash_type is float32 in every case"),
    Survivor("MelWeightMatrix", ".* with inputs of .*", "its inputs are constants of the case, which decide a shape"),
    Survivor("*Range", ".* with inputs of .*", "its inputs are constants of the case, which decide a shape"),
    Survivor("EyeLike", "float.* digits", "the elements do not matter"),
    Survivor("IsNaN", "float.* digits", "every number of fewer digits is a number"),
    Survivor("NonZero", "float.* digits", "no number is rounded to 0"),
    Survivor("Sign", "float.* digits", "no number is rounded to 0"),
    Survivor("S[hi][az][pe]*", "float.* digits", "the elements do not matter"),
    Survivor("SequenceLength", "float.* digits", "the elements do not matter"),
    Survivor("Attention", "float64 with .*", "softmax_precision is float32 where it is left out"),
    Survivor("Resize", "float64 with .*", "coordinates and weights are float32"),
    Survivor("ConstantOfShape", "float32 with outputs .*", "one of its values is no fraction of two"),
    Survivor("com.microsoft.MurmurHash3", "float.* digits", "every bit of few numbers is hashed"),
    Survivor("ai.onnx.ml.*", "float64 with inputs .*", "results are float32, or decided by whole numbers"),
    Survivor("ai.onnx.ml.Binarizer", "float.* with outputs .*", "0 and 1 have one digit"),
    Survivor("ai.onnx.ml.OneHotEncoder", "float.* digits", "categories are whole numbers"),
    Survivor("ai.onnx.ml.OneHotEncoder", "zeros (ignored|always 1)", "what is no category is an error where zeros is 0"),
    Survivor("ai.onnx.ml.LabelEncoder", "X of (int16|int32) .*", "pairs of keys and values alone have kernels of them"),
    Survivor("ai.onnx.ml.FeatureVectorizer", "inputdimensions ignored", "the inputs have their sizes"),
    Survivor("ai.onnx.ml.DictVectorizer", "an initializer", "a map is none"),
    Survivor("ai.onnx.ml.DictVectorizer", "the last row", "the output is a vector"),
    Survivor("ai.onnx.ml.CastMap", "an initializer", "a map is none"),
    Survivor("ai.onnx.ml.CastMap", "cast_to (ignored|always .*)", "the graph states the type of the output"),
    Survivor("ai.onnx.ml.CastMap", "map_form (ignored|always 'DENSE')", "of a map with a key for each index both forms give the same"),
    Survivor("ai.onnx.ml.TreeEnsemble*", "tree_roots from its end", "a sum has no order"),
    Survivor("Hardmax", "float.* with outputs of .*", "0 and 1 have one digit"),
    Survivor("com.microsoft.Range", "(start|limit|delta) (read|with) .*|the last row", "tensors of one element give a vector"),
    Survivor("com.microsoft.Unique", "the last row", "the outputs are vectors"),
    Survivor("com.microsoft.BifurcationDetector", "the last row", "the outputs are a vector and a scalar"),
    Survivor("com.microsoft.Pad", "pads read by columns", "there is one row"),
    Survivor("com.microsoft.QLinearSoftmax", "x_zero_point not seen", "numbers that are all moved have the same Softmax"),
    Survivor("com.microsoft.MatMulNBits", "K ignored", "it follows from the shape of A"),
    Survivor("com.microsoft.MatMulNBits", "accuracy_level (ignored|always .*)", "the bound holds for any finer level"),
    Survivor("com.microsoft.QMoE", "accuracy_level (ignored|always .*)", "the bound holds for any finer level"),
    Survivor("com.microsoft.RotaryEmbedding", "rotary_embedding_dim (ignored|always .*)", "it follows from the shape of cos_cache"),
    Survivor("com.microsoft.GroupQueryAttention", "total_sequence_length (read|with) .*", "a tensor of one element"),
    Survivor("com.microsoft.GroupQueryAttention", "qk_output ignored", "the fourth output is asked for with one value alone"),
    Survivor("com.microsoft.MultiHeadAttention", "past_sequence_length (read|with) .*", "a tensor of one element"),
    Survivor("com.microsoft.EmbedLayerNormalization", "mask_index_type (ignored|always .*)", "it decides what is inferred alone"),
    Survivor("Optional", "type always .*", "an optional without an element shows no type"),
    Survivor("OptionalHasElement", "input (read|with) .*|float.* digits|inputs of .*", "the elements do not matter"),
    Survivor("Random*", "seed .*", "a seed promises no elements; test_drawing compares nodes with seeds"),
    Survivor("Bernoulli", "seed .*", "a seed promises no elements; test_drawing compares nodes with seeds"),
    Survivor("Multinomial", "seed .*", "a seed promises no elements; test_drawing compares nodes with seeds"),
    Survivor("Random*", "input (read|with) .*", "the elements do not matter"),
    Survivor("Random*", "rank [06]|static shapes", "one element, or eight, may be any of its law; without inputs no shape is declared"),
    Survivor("QLinearMatMul", ".* of float8.* in version any", "ONNX does not say to what products of floats of 8 bits are rounded"),
    Survivor("com.microsoft.GatedAdd", "gate_weight read by columns", "a column of one element a row is the same either way"),
    Survivor("com.microsoft.QMoE", "fc._experts_weights of float8e4m3fn in version any", "bytes alone have a formula"),
    Survivor("Random*", "float.* digits", "a law is that of numbers of fewer digits as well"),
    Survivor("Bernoulli", "float.* digits", "a probability of fewer digits is as good as the same"),
    Survivor("Multinomial", "float.* digits", "a probability of fewer digits is as good as the same"),
)  # fmt: skip


def reason(operator: str, name: str) -> str | None:
    """Return why a mistake cannot show; None if it should."""
    return next(
        (
            each.because
            for each in SURVIVORS
            if fnmatchcase(operator, each.operators) and re.fullmatch(each.pattern, name)
        ),
        None,
    )
