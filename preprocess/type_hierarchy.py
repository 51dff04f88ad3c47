"""Type hierarchies: topics are Python classes, and a class covers its subclasses.

The object-oriented interface of Kulik 2004, sections 3.3 and 6.4. Classes travel by name, so each
preprocessor has to know them: names are looked up, never imported. Subclasses that are only
declared to be some (ABCMeta.register) do not count, for such a declaration can come at any time
and the order of topics must not change.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import get_args

from preprocess.errors import LanguageError
from preprocess.hierarchy import Hierarchy, Keywords, names


class TypeHierarchy(Hierarchy):
    """Classes and all they inherit from; a notification is any object."""

    name = "types"

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._up: dict[str, Keywords] = {}
        self._of_class: dict[type, Keywords] = {}
        self._names: dict[type, str] = {}
        for cls in classes:
            self.add(cls)

    def add(self, cls: type) -> None:
        """Make a class and all that it inherits from known by name."""
        for ancestor in reversed(cls.__mro__):
            name = name_of(ancestor)
            if name in self._up and ancestor not in self._names:
                raise LanguageError("another class has this name", repr(name))
            self._names[ancestor] = name
            self._up[name] = frozenset(map(name_of, ancestor.__mro__))
        self._of_class.clear()

    def up(self, keyword: str) -> Keywords:
        above = self._up.get(keyword)
        if above is None:
            raise LanguageError("not a class that this preprocessor knows", repr(keyword))
        return above

    def parse(self, subscription: object) -> Keywords:
        if isinstance(subscription, UnionType):
            subscription = get_args(subscription)
        several = subscription if isinstance(subscription, list | tuple) else [subscription]
        classes = [choice for choice in several if isinstance(choice, type)]
        if len(classes) < len(several):
            return self.topic(names(subscription, "type"))
        return self.topic(map(self._name, classes))

    def parse_notification(self, notification: object) -> Keywords:
        """What is known of the object's class; a class that is not known counts as its bases."""
        cls = type(notification)
        known = self._of_class.get(cls)
        if known is None:
            classes = [self._names[above] for above in cls.__mro__ if above in self._names]
            known = self._of_class[cls] = frozenset(classes)
        return known

    def _name(self, cls: type) -> str:
        if cls not in self._names:
            raise LanguageError("not a class that this preprocessor knows", repr(name_of(cls)))
        return self._names[cls]


def name_of(cls: type) -> str:
    """How a class is called in texts."""
    return f"{cls.__module__}.{cls.__qualname__}"
