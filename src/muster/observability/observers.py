"""Several observers as one. A run never fails because somebody watches it: an observer that raises is dropped."""

import logging
from collections.abc import Iterable

from muster.domain.observation import Observation, Observer


class ObserverGroup:
    """Tells every observer what the engine tells this one."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)

    def __call__(self, observation: Observation) -> None:
        """Pass an observation on."""
        for observer in self._observers:
            try:
                observer(observation)
            except Exception as error:
                self._drop(observer, observation, error)

    def _drop(self, observer: Observer, observation: Observation, error: Exception) -> None:
        self._observers = tuple(one for one in self._observers if one is not observer)
        # Only the kinds: the message of an error may quote what was observed.
        logging.getLogger("muster").error(
            "the observer %s raised %s at %s and is not called again",
            type(observer).__name__,
            type(error).__name__,
            type(observation).__name__,
        )
