import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad

from skbayesnn.inference import DensePrecision
from skbayesnn.network import Network
from skbayesnn.posterior import Gaussian, Posterior, weight_groups
from skbayesnn.predictive import Member, NoiseNetworks, left_out

X = np.array([[0.5], [2.0]])
SLOPE, BIAS, SD = 0.4, 1.0, 0.3  # of the log precision


def make_member(sd=SD, n_outputs=1, log_range=(-50.0, 50.0)):
    """A line whose log precision is a line, with uncertain weights of both."""
    network, k = Network((1, n_outputs)), 2 * n_outputs
    noise = NoiseNetworks(
        np.full((1, n_outputs), np.exp(-BIAS)),
        network=network,
        theta=np.repeat([SLOPE, BIAS], n_outputs)[None],
        log_range=log_range,
        precision=DensePrecision(np.eye(k) / sd**2),
    )
    precision = DensePrecision(25.0 * np.eye(k))
    return Member(network, np.repeat([2.0, 0.0], n_outputs), precision, noise)


def log_density(member, residual):
    """Of targets that are so far from the mean outputs."""
    return member.log_densities(X, member.outputs(X)[0] + residual)[0]


def log_precision(x, sd=SD):
    """Its mean and standard deviation."""
    return SLOPE * x + BIAS, sd * np.sqrt(1 + x**2)


@pytest.mark.parametrize("residual", [0.0, 1.0, -4.0])
def test_density_averages_over_the_log_precision(residual):
    member = make_member()
    _, (covariance,) = member.moments(X)
    found = log_density(member, np.full((2, 1), residual))
    for i, x in enumerate(X[:, 0]):
        centre, sd = log_precision(x)
        exact = quad(
            lambda g, i=i, centre=centre, sd=sd: (
                stats.norm.pdf(g, centre, sd)
                * stats.norm.pdf(residual, 0, np.sqrt(covariance[i, 0, 0] + np.exp(-g)))
            ),
            centre - 9 * sd,
            centre + 9 * sd,
        )[0]
        assert found[i] == pytest.approx(np.log(exact), abs=1e-3)


def test_mean_variance_of_the_noise():
    centre, sd = log_precision(X)
    variances = make_member().noise.variances(X)[0]
    assert_allclose(variances, np.exp(-centre + sd**2 / 2), rtol=1e-6)


def test_noise_stays_in_its_range():
    far = np.array([[1e5]])
    variances = make_member(log_range=(-3.0, 2.0)).noise.mixture(far)[1]
    assert_allclose([variances.min(), variances.max()], np.exp([-2.0, 3.0]))


def test_leave_one_out_has_the_uncertain_noise():
    y, network = 2.0 * X + np.array([[0.1], [-3.0]]), Network((1, 1))
    groups = weight_groups(network, "single")
    posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(2))
    uncertain, certain = (
        left_out(make_member(sd=sd), posterior, np.exp([BIAS])).log_density for sd in (SD, 1e-8)
    )
    assert uncertain[1] > certain[1] + 0.1  # a distant row is less of a surprise
