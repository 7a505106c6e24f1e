"""ONNX's own tests of runtimes, with taeda as the runtime."""

from __future__ import annotations

import os
import unittest
import warnings
from typing import Any

import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx.backend.test")
from onnx.backend.base import Backend, BackendRep  # noqa: E402

import taeda.onnx  # noqa: E402
from taeda.onnx.values import to_array  # noqa: E402


class Run(BackendRep):
    """A model that has been loaded: arrays in, arrays out."""

    def __init__(self, model: Any):
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        results = self.model(*inputs)
        return tuple(map(to_array, results if len(self.model.output_names) > 1 else [results]))


class TaedaBackend(Backend):
    """What ``onnx.backend.test`` calls."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Run:
        return Run(taeda.onnx.load(model))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


#: The cases that do not pass, by why.
DIFFERENT = {
    "the numbers drawn are those of NumPy's generator": (
        "bernoulli bernoulli_expanded bernoulli_double bernoulli_double_expanded bernoulli_seed bernoulli_seed_expanded "
        "training_dropout training_dropout_default training_dropout_mask training_dropout_default_mask"
    ),
    "float16: 2 of 192 elements are the next number": "attention_4d_causal_fp16_expanded",
    "the test compares a sequence that has a number with len()": "loop16_seq_none",
    "the test divides by 2.4 - 1 for a result of 2 elements; onnxruntime and PyTorch by 2 - 1": (
        "resize_downsample_scales_cubic_align_corners resize_downsample_scales_linear_align_corners"
    ),
}

#: What the default run has: an op of each family, old and new opsets, small networks.
QUICK = """
    abs add_bcast adam_multiple affine_grid_2d ai_onnx_ml_label_encoder_string_int ai_onnx_ml_tree_ensemble_set_membership
    argmax_default_axis_random_select_last_index attention_4d_gqa_with_past_and_present averagepool_2d_ceil
    averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True basic_convinteger batchnorm_epsilon_training_mode
    bitshift_left_uint8 bitwise_and_ui8_bcast_4v3d blackmanwindow cast_FLOAT_to_INT4 cast_FLOAT_to_FLOAT8E4M3FN
    cast_no_saturate_FLOAT_to_FLOAT8E5M2 causal_conv_with_state_silu_with_past_state center_crop_pad_crop_and_pad
    clip_default_min col2im_5d compress_0 concat_3d_axis_negative_1 constant_pad_negative_axes convtranspose_group_2
    convtranspose_autopad_same cumsum_2d_axis_0_exclusive deform_conv_with_multiple_offset_groups dequantizelinear_blocked
    dequantizelinear_int4 dropout_default_mask dynamicquantizelinear einsum_batch_matmul expand_dim_changed
    flexattention_causal_mask gather_negative_indices gathernd_example_int32_batch_dim1 gelu_tanh_2 gradient_of_add_and_mul
    gridsample_bicubic_align_corners_1_additional_1 group_normalization_epsilon gru_batchwise hardmax_one_hot if_opt if_seq
    isinf_negative layer_normalization_3d_axis1_epsilon linear_attention_gated_delta loop11 loop13_seq lpnormalization_l2_axis_0
    lrn lstm_with_peepholes matmul_4d maxpool_2d_dilations maxpool_with_argmax_2d_precomputed_strides
    maxunpool_export_with_output_shape melweightmatrix mod_mixed_sign_int8 momentum_multiple nesterov_momentum
    nllloss_NCd1d2_with_weight nonmaxsuppression_two_classes nonzero_example onehot_negative_indices
    optional_get_element_optional_sequence pow_types_float32_int64 prelu_broadcast qlinearconv qlinearmatmul_3D_int8_float16
    quantizelinear_blocked_asymmetric range_int32_type_negative_delta_expanded reduce_l2_do_not_keepdims_random
    reduce_log_sum_exp_empty_set reduce_max_bool_inputs regex_full_match_email_domain reshape_zero_and_negative_dim
    resize_downsample_sizes_cubic_antialias resize_tf_crop_and_resize resize_upsample_sizes_nearest_not_larger
    reversesequence_time rms_normalization_4d_axis_negative_2 rnn_seq_length roialign_mode_max rotary_embedding scan9_sum
    scatter_elements_with_reduction_min scatternd_multiply sce_mean_weight_ii_3d_log_prob sequence_insert_at_front
    sequence_map_add_1_sequence_1_tensor_expanded shape_start_1_end_negative_1 slice_neg_steps softmax_axis_0
    spacetodepth split_to_sequence_nokeepdims stft_with_window string_concat_broadcasting string_split_maxsplit
    strnorm_model_monday_casesensintive_lower tensorscatter_circular tfidfvectorizer_tf_batch_uniandbigrams_skip5 top_k
    training_dropout_zero_ratio_mask tril_square_neg unique_sorted_with_negative_axis upsample_nearest where_example
    AvgPool3d_stride BatchNorm2d_eval Conv2d_groups Embedding GLU operator_non_float_params sign_model squeezenet
""".split()


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """The cases that need no download, by name: functions of no argument, by kind of case."""
    os.environ["ONNX_HOME"] = str(tmp_path_factory.mktemp("onnx"))  # small networks put their expectations there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while cases are made
        classes = onnx.backend.test.BackendTest(TaedaBackend, __name__).exclude("_cuda$").test_cases
    found: dict = {}
    for kind, case in classes.items():
        for name in unittest.TestLoader().getTestCaseNames(case):
            if name.endswith("_cpu"):
                short = name.removeprefix("test_").removesuffix("_cpu")
                found.setdefault(kind, {})[short] = getattr(case(name), name)
    return found


def test_cases(cases):
    everything = {name: run for kind in cases.values() for name, run in kind.items()}
    chosen = [name for name in QUICK if name in everything]  # releases of onnx add and rename some
    assert len(chosen) > 0.9 * len(QUICK)
    for name in chosen:
        try:
            everything[name]()
        except Exception as error:
            raise AssertionError(f"case {name}") from error


@pytest.mark.sweep
@pytest.mark.parametrize(
    "kind", ["NodeModel", "RealModel", "SimpleModel", "PyTorchConvertedModel", "PyTorchOperatorModel"]
)
def test_all_cases(cases, kind):
    failed = {}
    different = {name for names in DIFFERENT.values() for name in names.split()}
    for name, run in cases[f"OnnxBackend{kind}Test"].items():
        try:
            run()
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    assert {name: why for name, why in failed.items() if name not in different} == {}
    assert failed.keys() == different & cases[f"OnnxBackend{kind}Test"].keys()
