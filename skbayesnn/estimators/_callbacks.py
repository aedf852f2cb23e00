"""Callbacks of scikit-learn (from version 1.9 on) are told of the progress of a fit."""

from contextlib import contextmanager
from functools import wraps

from skbayesnn.inference import Lines, reporter

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # an earlier version

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """There are no callbacks."""

    def with_callbacks(method):
        """The method, with a frame around it as there is with callbacks."""

        @wraps(method)
        def as_it_is(*args, **kwargs):
            return method(*args, **kwargs)

        return as_it_is


def has_callbacks(estimator):
    """Whether any are set, or an estimator around this one keeps account of its fits."""
    return hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")


@contextmanager
def callbacks_told(estimator, X, y):
    """Tell callbacks, if there are any, that a fit begins and ends."""
    if not has_callbacks(estimator):
        yield
        return
    root = estimator._init_callback_context(max_subtasks=None)
    root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    yield
    given = {"estimator": estimator, "X": X, "y": y}
    root.call_on_fit_task_end(**given, reconstruction_attributes=dict)  # fitted as it is


def progress_of(estimator, deadline):
    """Who is told how far a fit is: the user, and the callbacks of the estimator if any are set."""
    root = getattr(estimator, "_callback_fit_ctx", None)
    if root is None:
        return reporter(estimator.verbose, deadline)
    return CallbackTasks(estimator, root, deadline)


class CallbackTasks(Lines):
    """Lines, and a task of callbacks for every stage of a fit, with a task inside for every step.

    Stages within steps are left out: scikit-learn asks for a task before its parts are begun.

    Parameters
    ----------
    estimator : estimator
    root : sklearn.callback.CallbackContext
        Of the fit.
    deadline : Deadline
        Of the fit.
    """

    def __init__(self, estimator, root, deadline):
        super().__init__(estimator.verbose, deadline)
        self._estimator, self._root, self._stage = estimator, root, None

    def begin(self, stage, seconds):
        """A task begins, whose steps are known in number unless there may be more."""
        super().begin(stage, seconds)
        if stage.depth == 1:
            n_steps = None if stage.is_open or not len(stage.works) else len(stage.works)
            self._stage = self._root.subcontext(stage.name, max_subtasks=n_steps)
            self._stage.call_on_fit_task_begin(estimator=self._estimator)

    def step(self, stage, text):
        """A part of it is done."""
        super().step(stage, text)
        if stage.depth == 1:
            part = self._stage.subcontext(text or "step")
            part.call_on_fit_task_begin(estimator=self._estimator)
            part.call_on_fit_task_end(estimator=self._estimator)

    def end(self, stage):
        """The task has ended."""
        if stage.depth == 1:
            self._stage.call_on_fit_task_end(estimator=self._estimator)
            self._stage = None
