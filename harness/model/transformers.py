"""The transformers of ONNX Runtime's optimizer by level, as onnxruntime 1.32.0 names them in the verbose log of a
session's creation. That log does not name the rules of a rule-based transformer; they are named as in
`onnxruntime/core/optimizer/graph_transformer_utils.cc`."""

from __future__ import annotations

RULES: dict[str, tuple[str, ...]] = {
    "Level1_RuleBasedTransformer": (
        "EliminateIdentity",
        "EliminateSlice",
        "UnsqueezeElimination",
        "EliminateDropout",
        "ExpandElimination",
        *("CastElimination", "CastChainElimination", "PreShapeNodeElimination", "NoopElimination"),
        *("DivMulFusion", "FuseReluClip", "GemmSumFusion", "GemmTransposeFusion", "NotWhereFusion"),
        *("ConvAddFusion", "ConvMulFusion", "ConvBNFusion", "Pad_Fusion", "MatMul_BatchNormalization_Fusion"),
        *("LabelEncoderFusion", "EliminateConcat"),
    ),
    "Level2_RuleBasedTransformer": ("ClipQuantRewrite", "ReluQuantRewrite", "GemmTransposeFusion"),
}
"""The rules that a transformer applies, by its name in the log."""
TRANSFORMERS: dict[str, str] = {
    **dict.fromkeys(
        (
            *("Level1_RuleBasedTransformer", "DoubleQDQPairsRemover", "ConstantSharing"),
            *("CommonSubexpressionElimination", "ConstantFolding", "MatMulAddFusion", "ReshapeFusion"),
            *("FreeDimensionOverrideTransformer", "SliceConcatToSpaceToDepthFusion", "GeluFusionL1"),
            *("LayerNormFusionL1", "QDQPropagationTransformer", "WeightBiasQuantization"),
            *("EnsureUniqueDQForNodeUnit", "DQMatMulNBitsFusion", "WhereDummyDq", "TransposeOptimizer"),
        ),
        "basic",
    ),
    **dict.fromkeys(
        (
            "Level2_RuleBasedTransformer",
            "TransposeOptimizer_CPUExecutionProvider",
            "QDQS8ToU8Transformer",
            *("QDQSelectorActionTransformer", "GemmActivationFusion", "MatMulIntegerToFloatFusion"),
            *("DynamicQuantizeMatMulFusion", "ConvActivationFusion", "GeluFusionL2", "LayerNormFusionL2"),
            *("SimplifiedLayerNormFusion", "AttentionFusion", "EmbedLayerNormFusion"),
            *("GatherSliceToSplitFusion", "GatherToSliceFusion", "MatmulTransposeFusion", "BiasGeluFusion"),
            "GroupQueryAttentionFusion",
            "SkipLayerNormFusion",
            "BiasSkipLayerNormFusion",
            "FastGeluFusion",
            "QuickGeluFusion",
            "SwiGluFusion",
            "BiasSoftmaxFusion",
            "BiasDropoutFusion",
            "MatMulScaleFusion",
            *("MatMulActivationFusion", "MatMulNBitsFusion", "GroupQueryAttentionPreNormFusion"),
            "QDQFinalCleanupTransformer",
        ),
        "extended",
    ),
    **dict.fromkeys(("NchwcTransformer", "NhwcTransformer", "ConvAddActivationFusion"), "all"),
}
"""The level at which each runs first."""
