"""Recipes for valid calls of functions whose arguments, drawn one by one, hardly ever fit together.

A recipe is a word for each argument. Letters are the sizes of a tensor, one size for each letter in a call; ``ij<n`` holds
indices below size ``n``, ``ij?`` bools, ``ij+`` a positive definite matrix, ``ij|jk`` is a list of tensors (``ij|`` of one); ``name=word``
goes by keyword; anything else is a Python value. Several recipes of a function are separated by ``;``.
"""

from __future__ import annotations

_POOL = "nchw 2 stride=1; nchw (2,1) padding=1; chw 3 dilation=1 ceil_mode=True"
_NORM = "nchw"
RECIPES = {
    # products
    "addmm": "ik ij jk; k ij jk", "Tensor.addmm_": "ik ij jk", "addmv": "i ij j", "addmv_": "i ij j",
    "addbmm": "ik bij bjk", "Tensor.addbmm_": "ik bij bjk", "baddbmm": "bik bij bjk; k bij bjk",
    "Tensor.baddbmm_": "bik bij bjk", "addr": "ij i j", "Tensor.addr_": "ij i j", "bilinear": "ni nj oij o",
    "nn.functional.linear": "ni oi o", "mm": "ij jk", "bmm": "bij bjk", "mv": "ij j", "dot": "i i", "vdot": "i i",
    "inner": "ni mi", "ger": "i j", "matmul": "ij jk; bij jk; bij bjk; j jk; aij bjk", "kron": "ij kl",
    "linalg.multi_dot": "ij|jk|kl; ij|jk", "chain_matmul": "ij jk kl", "einsum": "'ij,jk->ik' ij jk; 'bij,bjk->bik' bij bjk",
    "tensordot": "ijk jkl dims=2", "matrix_power": "bnn 3; nn+ -2", "linalg.vecdot": "ij ij", "linalg.cross": "ij ij",
    "cdist": "bij bkj; ij kj", "cosine_similarity": "ij ij", "pairwise_distance": "ij ij", "nn.functional.pdist": "ij",
    # linear algebra
    "linalg.cholesky": "bnn+", "cholesky": "nn+", "cholesky_solve": "nk nn+", "cholesky_inverse": "nn+", "inverse": "bnn+",
    "linalg.solve": "nn+ nk; bnn+ bnk; bnn+ bn", "linalg.solve_ex": "bnn+ bnk", "linalg.lu_factor": "bnm", "linalg.lu": "bnm",
    "linalg.solve_triangular": "bnn+ bnk upper=True; nn+ nk upper=False left=True", "triangular_solve": "nk nn+",
    "linalg.lu_solve": "nn+ n<n nk", "lu_solve": "nk nn+ n<n", "lu_unpack": "bnn+ bn<n; nn n<n unpack_data=False",
    "linalg.ldl_factor": "bnn+", "linalg.ldl_factor_ex": "bnn+", "linalg.ldl_solve": "nn+ n<n nk", "linalg.qr": "bnm",
    "linalg.eig": "bnn", "linalg.eigh": "bnn+", "linalg.eigvals": "nn", "linalg.eigvalsh": "nn+", "linalg.svd": "bnm",
    "linalg.svdvals": "bnm", "linalg.pinv": "bnm", "linalg.lstsq": "nm nk; bnm bnk", "det": "bnn", "slogdet": "bnn+",
    "linalg.matrix_norm": "bnm; bnm 'nuc'; nm 2", "linalg.matrix_rank": "bnm", "matrix_exp": "bnn", "linalg.cond": "nn+",
    "linalg.householder_product": "nm m", "orgqr": "nm m", "ormqr": "nm m nk; nm m nk True True", "lobpcg": "nn+ 1",
    "linalg.tensorsolve": "ijij ij", "linalg.tensorinv": "ijij", "svd_lowrank": "nm 2", "pca_lowrank": "nm 2",
    "trapezoid": "ij ij", "cumulative_trapezoid": "ij j",
    # by index
    "index_add": "ij 0 k<i kj; ij 1 k<j ik", "Tensor.index_add_": "ij 0 k<i kj", "index_copy": "ij 0 k<i kj; ij 1 k<j ik",
    "Tensor.index_copy_": "ij 0 k<i kj", "index_reduce": "ij 0 k<i kj 'amax'; ij 1 k<j ik 'mean'; i 0 k<i k 'prod'",
    "Tensor.index_reduce_": "ij 0 k<i kj 'amin'", "index_fill": "ij 1 k<j 2.5", "index_select": "ij 1 k<j; ij 0 k<i",
    "scatter": "ij 0 kj<i kj; ij 1 ik<j ik; ij 1 ik<j 1.5", "Tensor.scatter_": "ij 0 kj<i kj; ij 1 ik<j 2 reduce='add'",
    "scatter_add": "ij 1 ik<j ik; ij 0 kj<i kj", "gather": "ij 0 kj<i; ij 1 ik<j", "take_along_dim": "ij ik<j 1",
    "scatter_reduce": "ij 1 ik<j ik 'amax'; ij 0 kj<i kj 'mean'; i 0 k<i k 'prod' include_self=False",
    "Tensor.scatter_reduce_": "ij 1 ik<j ik 'sum'", "masked_scatter": "ij ij? ij", "Tensor.masked_scatter_": "ij ij? ij",
    "put": "ij kl<i kl; ij k<j k True", "Tensor.put_": "ij kl<i kl", "take": "ij k<i", "segment_reduce": "ij 'sum' lengths=n<i",
    "index_put": "ij k<i| kj; ij k<i|k<j k accumulate=True",
    "index_put_": "ij k<i| kj; ij k<i|k<j k", "bincount": "n<m; n<m n; n<m minlength=7", "repeat_interleave": "ij i<k 0",
    "select_scatter": "ij i 1 0", "slice_scatter": "ij ij 1", "diagonal_scatter": "ii i", "as_strided_scatter": "ij j (2,) (1,)",
    "Tensor.__getitem__": "ij i?; ij k<i; ijl [0]", "Tensor.__setitem__": "ij ij? 1.0; ij k<i kj",
    # losses
    "nn.functional.cross_entropy": "nc n<c; nchw nhw<c; nc nc; nc n<c c", "nn.functional.nll_loss": "nc n<c; nchw nhw<c; c 1",
    "nn.functional.linear_cross_entropy": "ni oi n<o", "nn.functional.multi_margin_loss": "nc n<c; nc n<c 2",
    "nn.functional.multilabel_margin_loss": "nc nc<c", "cosine_embedding_loss": "ni ni n", "margin_ranking_loss": "n n n",
    "triplet_margin_loss": "ni ni ni; ni ni ni swap=True", "nn.functional.binary_cross_entropy": "ni? ni?",
    "nn.functional.one_hot": "ij<c; ij<c 9", "ctc_loss": "tnc nl<c n<t n<l; tnc nl<c n<t n<l 1 'none' True",
    "nn.functional.gaussian_nll_loss": "ni ni ni+", "nn.functional.triplet_margin_with_distance_loss": "ni ni ni",
    # convolution, pooling, sampling
    "conv1d": "ncl oc[3] o; ncl o[1][2] groups=1 padding=1", "conv2d": "nchw oc[3][3] o padding=1; nchw oc[1][1]; chw oc[2][3]",
    "conv3d": "ncdhw oc[1][2][2] o; ncdhw oc[2][2][2] stride=2 padding=1", "conv_tbc": "tnc [3]co o",
    "conv_transpose1d": "ncl co[3] o; ncl co[3] stride=2", "conv_transpose2d": "nchw co[2][3] o stride=2",
    "conv_transpose3d": "ncdhw co[1][2][2] o", "convolution": "nchw oc[3][3] o (1,1) (1,1) (1,1) False (0,0) 1",
    "nn.functional.unfold": "nchw 2; nchw (2,1) padding=1 stride=2", "nn.functional.fold": "nhw (3,3) 1",
    **{f"{p}{kind}_pool{d}d": _POOL if d == 2 else "ncl 2; ncl 3 padding=1" if d == 1 else "ncdhw 2 padding=1; ncdhw 1"
       for kind, d, p in [("avg", 1, ""), ("avg", 2, "nn.functional."), ("avg", 3, "nn.functional."), ("max", 1, ""),
                          ("max", 2, ""), ("max", 3, "")]},
    **{f"nn.functional.max_pool{d}d_with_indices": "ncl 2" if d == 1 else "nchw 2" if d == 2 else "ncdhw 2" for d in (1, 2, 3)},
    "max_pool1d_with_indices": "ncl 2", "nn.functional.lp_pool1d": "ncl 2.0 2", "nn.functional.lp_pool2d": "nchw 2.0 2",
    "nn.functional.lp_pool3d": "ncdhw 2.0 1", "adaptive_avg_pool1d": "ncl 3; ncl 1", "adaptive_max_pool1d": "ncl 2",
    "nn.functional.adaptive_avg_pool2d": "nchw 3; nchw (2,None)", "nn.functional.adaptive_avg_pool3d": "ncdhw 2",
    **{f"nn.functional.adaptive_max_pool{d}d{s}": ("ncl 2", "nchw (3,2)", "ncdhw 2")[d - 1]
       for d, s in ((2, ""), (3, ""), (1, "_with_indices"), (2, "_with_indices"), (3, "_with_indices"))},
    **{f"nn.functional.fractional_max_pool{d}d{s}": f"nchw{'d' * (d - 2)} 1 output_size=1; nchw{'d' * (d - 2)} 2 output_ratio=0.5"
       for d in (2, 3) for s in ("", "_with_indices")},
    "nn.functional.max_unpool1d": "ncl ncl<l 2", "nn.functional.max_unpool2d": "nchw nchw<h 2",
    "nn.functional.max_unpool3d": "ncdhw ncdhw<d 2", "nn.functional.interpolate": "ncl 5; nchw scale_factor=1.5; nchw (3,2) mode='bilinear'",
    "nn.functional.upsample": "nchw 4 mode='nearest'; nchw (3,2) mode='bicubic'", "nn.functional.grid_sample": "nchw nkl[2]; ncdhw nklj[3]",
    "grid_sampler_2d": "nchw nkl[2] 0 0 False", "grid_sampler_3d": "ncdhw nklj[3] 0 1 True", "grid_sampler": "nchw nkl[2] 0 2 False",
    "nn.functional.affine_grid": "n[2][3] (2,3,4,5); n[3][4] (2,1,2,3,4)", "affine_grid_generator": "n[2][3] (1,1,2,2) False",
    "pixel_shuffle": "n[4]hw 2", "pixel_unshuffle": "nc[4][2] 2", "channel_shuffle": "n[4]hw 2",
    "nn.functional.pad": "nchw (1,2); nchw (1,0,0,1) 'reflect'; ncl (1,1) 'circular'; ncdhw (1,1,1,1,0,0) 'replicate'",
    # normalisation, attention, embedding, recurrence
    "batch_norm": "nchw c c c c True 0.1 1e-5 False; nc c c training=True", "instance_norm": "nchw c c c c; ncl",
    "group_norm": "nchw 1 c c; n[4]hw 2", "native_group_norm": "nchw c c 2 3 4 1 1e-5", "native_layer_norm": "nci (3,) [3] [3] 1e-5",
    "layer_norm": "nc[5] (5,) [5] [5]; nc[5] (5,)", "rms_norm": "nc[5] (5,) [5]; nc[5] (5,)", "native_batch_norm": "nchw c c c c True 0.1 1e-5",
    "nn.functional.local_response_norm": "nchw 3", "nn.functional.normalize": "nc",
    "nn.functional.scaled_dot_product_attention": "bhij bhkj bhkl; bhij bhkj bhkl ik?; hij hkj hkl is_causal=True; bhij bhkj bhkl bhik",
    "embedding": "vj nk<v; vj n<v 0", "nn.functional.embedding": "vj nk<v; vj n<v max_norm=1.0", "embedding_renorm_": "vj n<v 1.0 2.0",
    "nn.functional.embedding_bag": "nk<v vj; n<v vj b<n mode='sum'; nk<v vj mode='max'", "embedding_bag": "vj n<v b<n",
    "nn.functional.multi_head_attention_forward": 
        "tn[4] tn[4] tn[4] 4 2 [12][4] [12] None None False 0.0 [4][4] [4]",
    "lstm_cell": "ni n[2]|n[2] [8]i [8][2]",
    "gru_cell": "ni n[2] [6]i [6][2] [6] [6]", "rnn_tanh_cell": "ni nh hi hh h h", "rnn_relu_cell": "ni nh hi hh",
    "gru": "tni [1]n[2] [6]i|[6][2]|[6]|[6] True 1 0.0 False False False", "rnn_relu": "tni [1]nh hi|hh|h|h True 1 0.0 False False False",
    "rnn_tanh": "tni [1]nh hi|hh|h|h True 1 0.0 False False True",
    "lstm": "tni [1]n[2]|[1]n[2] [8]i|[8][2]|[8]|[8] True 1 0.0 True False False",
    # the rest
    "stft": "b[32] 8; [32] 8 4 return_complex=True; b[40] 16 window=[16] center=False", "unravel_index": "n<m (3,5)",
    "combinations": "n 2; n 3 True", "cartesian_prod": "n m", "cov": "ij", "corrcoef": "ij", "histogram": "n 5", "histogramdd": "n[2] 3",
    "permute": "ijk (2,0,1)", "permute_copy": "ijk (0,2,1)", "Tensor.unfold": "[9]j 0 3 2", "tensor_split": "ij 3 1",
    "Tensor.swapaxes_": "ij 0 1", "Tensor.swapdims_": "ij 0 1", "view_as_complex": "ij[2]", "gcd": "ij<n ij<m", "lcm": "ij<n ij<m",
    "searchsorted": "j ik; ij ik right=True", "bucketize": "ik j", "renorm": "ij 2 0 1.0", "quantile": "ij 0.3 1", "heaviside": "ij ij",
    "bitwise_left_shift": "ij<n ij<m", "bitwise_right_shift": "ij<n ij<m", "binomial": "n n", "multinomial": "ij+ 2 True; j? 1",
    "normal": "ij ij+", "poisson": "ij+", "bernoulli": "ij?",
}  # fmt: skip
