"""Progress of a fit, reported to the callbacks of scikit-learn (version 1.9 or later)."""

from contextlib import contextmanager

import numpy as np

from skbayesnn.inference import Progress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    FRAMES = 1  # of the stack, which `with_callbacks` adds
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty stand-in for scikit-learn without callbacks."""

    FRAMES = 0

    def with_callbacks(method):
        """Return the method as it is."""
        return method


@contextmanager
def reporting_to_callbacks(estimator, X, y):
    """Notify callbacks, if there are any, of the begin and the end of a fit."""
    here, above = "_skl_callbacks", "_parent_callback_ctx"  # set on it or on an enclosing one
    if not (hasattr(estimator, here) or hasattr(estimator, above)):
        yield
        return
    root = estimator._init_callback_context(max_subtasks=None)
    root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    yield
    # an estimator that is already fitted needs no attributes for its reconstruction
    root.call_on_fit_task_end(estimator=estimator, X=X, y=y, reconstruction_attributes=dict)


def progress_of(estimator, deadline):
    """Make the progress reporter of a fit: printed lines, and callbacks if any are set."""
    root = getattr(estimator, "_callback_fit_ctx", None)
    if root is None:
        return Progress(estimator.verbose, deadline)
    return CallbackTasks(estimator, root, deadline)


class CallbackTasks(Progress):
    """Progress lines, with a callback task for every stage of a fit and a subtask for every step.

    Stages within steps are left out: scikit-learn requires a task to exist before its subtasks.
    """

    def __init__(self, estimator, root, deadline):
        super().__init__(estimator.verbose, deadline)
        self._estimator, self._root = estimator, root

    @contextmanager
    def stage(self, name, works=(), is_open=False, seconds=np.nan):
        """Open a stage as a task; the number of its steps is fixed unless there may be more."""
        with super().stage(name, works, is_open, seconds) as step:
            if self.depth > 1:
                yield step
                return
            n_steps = None if is_open or not len(works) else len(works)
            task = self._root.subcontext(name, max_subtasks=n_steps)
            task.call_on_fit_task_begin(estimator=self._estimator)

            def step_of_task(text=None):
                step(text)
                part = task.subcontext(text or "step")
                part.call_on_fit_task_begin(estimator=self._estimator)
                part.call_on_fit_task_end(estimator=self._estimator)

            try:
                yield step_of_task
            finally:
                task.call_on_fit_task_end(estimator=self._estimator)
