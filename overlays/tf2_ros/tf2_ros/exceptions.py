"""Why there is no transform."""


class TransformException(Exception):
    """There is no transform."""


class LookupException(TransformException):
    """A frame does not exist."""


class ConnectivityException(TransformException):
    """Nothing connects two frames."""


class ExtrapolationException(TransformException):
    """The transform at this time is not known, or no longer."""


class InvalidArgumentException(TransformException):
    """An argument, such as a frame's name, is not allowed."""


class TimeoutException(TransformException):
    """The transform did not come in time."""
