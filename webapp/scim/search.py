"""Lists: a filter as a condition for Postgres, an order, and a page (RFC 7644, section 3.4.2)."""

from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import CharField, Expression, F, Model, Q, QuerySet, Value
from django.db.models.functions import Cast, Concat, Lower
from django.db.models.lookups import (
    Contains,
    EndsWith,
    Exact,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    StartsWith,
)
from django.http import HttpRequest
from scim2_models import Context, InvalidFilterException, InvalidPathException, SearchRequest
from scim2_models.path import (
    AttrPath,
    Comparison,
    FilterNode,
    FilterVisitor,
    LogicalExpr,
    LogicalOperator,
    Not,
    Present,
    ValuePath,
)

from chat.storable import is_storable
from webapp.scim.addresses import LETTERS, row_id

MAX_COUNT = 200
_USUAL_COUNT = 100
_MAX_FILTER_CHARS = 4096
_MAX_START = 2**31

_LOOKUPS: dict[str, type[Any]] = {
    "eq": Exact,
    "co": Contains,
    "sw": StartsWith,
    "ew": EndsWith,
    "gt": GreaterThan,
    "ge": GreaterThanOrEqual,
    "lt": LessThan,
    "le": LessThanOrEqual,
}
_ALL, _NONE = Q(pk__isnull=False), Q(pk__in=())


@dataclass(frozen=True, slots=True)
class Column:
    """Where an attribute is: an expression that is never null. `text` is compared in any case."""

    value: Expression | F
    kind: Literal["text", "exact", "flag", "id"]
    of: str = ""  # of which kind an id is


@dataclass(frozen=True, slots=True)
class Links:
    """The values of an attribute that names other resources by id: a table between the two."""

    through: type[Model]
    here: str
    there: str
    kind: str


@dataclass(frozen=True, slots=True)
class Page:
    total: int
    start: int
    rows: list[Any]


Columns = dict[str, Column | Links]
"""By the attribute's path, in small letters: "emails.value"."""


def query_of(request: HttpRequest, kind: type[Any], body: dict[str, Any] | None = None) -> Any:
    """The SearchRequest of an address, or of the body that was sent to …/.search."""
    wanted = dict(request.GET.items()) if body is None else body
    if len(str(wanted.get("filter") or "")) > _MAX_FILTER_CHARS:
        raise InvalidFilterException(detail=f"A filter has {_MAX_FILTER_CHARS} characters at most.")
    query: Any = SearchRequest.__class_getitem__(kind)
    return query.model_validate(wanted, scim_ctx=Context.SEARCH_REQUEST)


def page_of(rows: QuerySet[Any], query: Any, columns: Columns) -> Page:
    """Two queries: how many there are, and the page."""
    if query.filter is not None:
        rows = rows.filter(_Condition(columns).visit(query.filter.ast))
    count = min(_USUAL_COUNT if query.count is None else query.count, MAX_COUNT)
    start = min(query.start_index or 1, _MAX_START)
    total = rows.count()
    if not count or start > total:
        return Page(total, start, [])
    ordered = rows.order_by(*_order(query, columns), "pk")
    return Page(total, start, list(ordered[start - 1 : start - 1 + count]))


def _order(query: Any, columns: Columns) -> list[Any]:
    if query.sort_by is None:
        return []
    column = columns.get(_short(str(query.sort_by)))
    if not isinstance(column, Column):
        raise InvalidPathException(detail=f"Lists cannot be in the order of {query.sort_by}.")
    key = _comparable(column)
    return [key.desc() if query.sort_order == "descending" else key.asc()]


def _short(path: str) -> str:
    """Without the schema's name in front, and with the part that a bare `emails` means."""
    name = path.rpartition(":")[2].lower()
    return f"{name}.value" if name in ("emails", "members", "groups") else name


def _comparable(column: Column) -> Any:
    return Lower(column.value) if column.kind == "text" else column.value


class _Condition(FilterVisitor[Q]):
    """scim2_models has parsed the filter, checked its attributes and limited its depth. `within` is the
    attribute whose brackets are being read."""

    def __init__(self, columns: Columns, within: str = "") -> None:
        self._columns = columns
        self._within = within

    def visit_logical_expr(self, node: LogicalExpr) -> Q:
        joiner = Q.AND if node.op == LogicalOperator.and_ else Q.OR
        return Q(*(self.visit(term) for term in node.terms), _connector=joiner)

    def visit_not(self, node: Not) -> Q:
        return ~self.visit(node.expr)

    def visit_value_path(self, node: ValuePath) -> Q:
        within = node.attr_path.attr.lower()
        is_links = isinstance(self._columns.get(f"{within}.value"), Links)
        if is_links and not isinstance(node.val_filter, Comparison):
            # What holds in the brackets must hold for one value, and each is a row of its own.
            raise InvalidFilterException(detail=f"{within}[…] takes one comparison.")
        return _Condition(self._columns, within).visit(node.val_filter)

    def visit_present(self, node: Present) -> Q:
        column = self._column(node.attr_path)
        if isinstance(column, Links):
            return Q(pk__in=column.through._default_manager.values(column.here))
        return _ALL if column.kind == "flag" else ~Q(Exact(column.value, Value("")))

    def visit_comparison(self, node: Comparison) -> Q:
        column = self._column(node.attr_path)
        operator, value = str(node.op), node.value
        if operator == "ne":
            return ~self._compared(column, "eq", value, node)
        return self._compared(column, operator, value, node)

    def _compared(self, column: Column | Links, operator: str, value: Any, node: FilterNode) -> Q:
        if isinstance(column, Links):
            return _linked(column, operator, value)
        if column.kind == "flag":
            return Q(Exact(column.value, Value(str(value).lower() == "true")))
        text = "" if value is None else str(value)
        if column.kind == "id" and operator == "eq":
            pk = row_id(text, column.of)
            return Q(pk=pk) if pk else _NONE
        if not is_storable(text):
            return _NONE  # and nothing that is stored is like it
        text = text.lower() if column.kind == "text" else text
        return Q(_LOOKUPS[operator](_comparable(column), text))

    def _column(self, path: AttrPath) -> Column | Links:
        own = f"{path.attr}.{path.sub_attr}" if path.sub_attr else path.attr
        name = _short(f"{self._within}.{own}" if self._within else own)
        if name not in self._columns:
            raise InvalidFilterException(detail=f"Lists cannot be filtered by {own}.")
        return self._columns[name]


def _linked(links: Links, operator: str, value: Any) -> Q:
    if operator != "eq":
        raise InvalidFilterException(detail=f"{operator} is not possible for ids of others.")
    there = row_id(str(value), links.kind)
    if there is None:
        return _NONE
    rows = links.through._default_manager.filter(**{links.there: there})
    return Q(pk__in=rows.values(links.here))


def id_column(kind: str) -> Column:
    return Column(Concat(Value(LETTERS[kind]), Cast("pk", CharField())), "id", kind)
