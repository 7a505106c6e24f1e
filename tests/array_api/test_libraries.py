"""Libraries that take any array of the standard, on taeda's: scikit-learn's and SciPy's results are those for NumPy's."""

import os
import subprocess
import sys
import textwrap

import pytest

HEAD = """
import numpy as np
import taeda

rng = np.random.default_rng(0)
x, v = rng.normal(size=(40, 5)), np.abs(rng.normal(size=40)) + 0.1
y, target = (x[:, 0] > 0.1).astype("int64"), x @ np.arange(1.0, 6.0)

def same(function, *arrays, **tolerance):
    got, want = function(*map(taeda.from_numpy, arrays)), function(*arrays)
    got, want = (r if isinstance(r, tuple) else (r,) for r in (got, want))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert isinstance(g, taeda.Tensor) or not isinstance(w, np.ndarray), type(g)
        g = g.numpy() if isinstance(g, taeda.Tensor) else g
        np.testing.assert_allclose(g, w, **{"rtol": 1e-7, "atol": 1e-9, **tolerance})
"""


def run(code):
    """In a process of its own: both libraries ask the environment when they are imported, and keep settings."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HEAD + textwrap.dedent(code)],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_scipy():
    pytest.importorskip("scipy")
    run("""
        from scipy import cluster, fft, integrate, ndimage, optimize, signal, special, stats
        from scipy.optimize.elementwise import find_root
        from scipy.spatial.transform import Rotation

        same(lambda v: special.logsumexp(v), v)
        for name in ("erf", "gammaln", "expit", "ndtr"):
            same(getattr(special, name), v)
        same(fft.rfft, v)
        same(fft.fftn, x)
        same(lambda v: fft.dct(v), v)
        same(stats.skew, v)
        same(stats.zscore, x)
        same(lambda a, b: tuple(stats.pearsonr(a, b)), x[:, 0].copy(), x[:, 1].copy())
        same(lambda a, b: tuple(stats.ttest_ind(a, b)), x[:, 0].copy(), v)
        same(lambda v: signal.detrend(v), v)
        same(lambda v: signal.hilbert(v), v)
        same(cluster.vq.whiten, x)
        same(lambda x: cluster.vq.vq(x, x[:3, :])[0], x)
        same(integrate.simpson, v)
        same(optimize.rosen_der, v)
        same(lambda x: ndimage.gaussian_filter(x, 1.0), x)
        same(lambda x: Rotation.from_rotvec(x[:, :3]).as_matrix(), x)
        same(lambda a, b: find_root(lambda t: t * t - 2, (a, b)).x, np.zeros(3), np.full(3, 2.0))
    """)


def test_scikit_learn():
    pytest.importorskip("sklearn")
    run("""
        import sklearn
        from sklearn import decomposition, discriminant_analysis, linear_model, metrics, pipeline, preprocessing
        from sklearn.mixture import GaussianMixture

        sklearn.set_config(array_api_dispatch=True)
        for scaler in (preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.Normalizer):
            same(lambda x: scaler().fit_transform(x), x)
        for solver in ("full", "covariance_eigh"):
            pca = decomposition.PCA(2, svd_solver=solver)
            same(lambda x: (pca.fit_transform(x), pca.explained_variance_, pca.mean_), x)
        ridge = linear_model.Ridge(solver="svd")
        same(lambda x, t: ridge.fit(x, t).predict(x), x, target)
        steps = pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(3, svd_solver="full"), ridge)
        same(lambda x, t: steps.fit(x, t).predict(x), x, target)
        logistic = linear_model.LogisticRegression()
        same(lambda x, y: logistic.fit(x, y).predict_proba(x), x, y, rtol=1e-3, atol=1e-4)
        discriminant = discriminant_analysis.LinearDiscriminantAnalysis()
        same(lambda x, y: discriminant.fit(x, y).predict_proba(x), x, y)
        mixture = GaussianMixture(2, random_state=0, init_params="random")
        same(lambda x: mixture.fit(x).predict_proba(x), x, rtol=1e-4)
        guess = 1 - y
        guess[::3] = y[::3]
        for name in ("accuracy_score", "f1_score", "confusion_matrix"):
            same(getattr(metrics, name), y, guess)
        same(metrics.r2_score, target, target + 0.1)
        for name in ("euclidean_distances", "rbf_kernel", "cosine_similarity"):
            same(lambda x: getattr(metrics.pairwise, name)(x, x[:7, :]), x, atol=1e-7)
    """)
