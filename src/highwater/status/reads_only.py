"""What `highwater query` runs: the parsed plan decides, by a list of what reads; everything else is refused."""

import re
from collections.abc import Iterator

from highwater.runtime.errors import UsageError
from highwater.runtime.printable import printable

QUERIES = """
    Aggregate Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LimitAll LocalLimit LocalRelation
    Offset OneRowRelation PipeOperator Pivot Project RelationTimeTravel Repartition RepartitionByExpression Sample Sort
    SubqueryAlias Union Unpivot UnresolvedHaving UnresolvedHint UnresolvedInlineTable UnresolvedRelation
    UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction UnresolvedWith
    WithWindowDefinition
"""
DESCRIPTIONS = """
    CurrentNamespace DescribeColumn DescribeDeltaDetailCommand DescribeDeltaHistory DescribeFunction DescribeNamespace
    DescribeQueryCommand DescribeRelation DescribeRelationJsonCommand ExplainCommand ShowCatalogsCommand ShowColumns
    ShowCreateTable ShowCurrentNamespaceCommand ShowFunctions ShowNamespaces ShowNamespacesCommand ShowPartitions
    ShowTableProperties ShowTables ShowTablesExtended ShowViews UnresolvedFunctionName UnresolvedNamespace
    UnresolvedTable UnresolvedTableOrView UnresolvedView
"""
READS = {*QUERIES.split(), *DESCRIPTIONS.split()}
# these call Java, or can be told to read a file; all other functions of Spark work on their arguments alone
REACHING_OUT = """
    java_method reflect try_reflect
    from_avro schema_of_avro to_avro from_protobuf to_protobuf from_xml schema_of_xml to_xml
"""
TABLE_FUNCTIONS = """
    collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range sql_keywords stack
    variant_explode variant_explode_outer
"""
CATALYST = "org.apache.spark.sql.catalyst"


def refuse_what_does_more(spark, sql: str) -> None:
    """Refuse a statement that does more than read tables and views of the lake.

    Arguments:
        sql: one statement; nothing of it is run.
    Raises: UsageError that says what is not run; what Spark's parser raises when it is no SQL.
    """
    for part in _parts(spark, spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)):
        kind = part.getClass().getSimpleName().rstrip("$")
        if _is(spark, part, "plans.logical.LogicalPlan") and kind not in READS:
            raise _refusal(re.sub("(?<=[a-z])(?=[A-Z])", " ", kind).lower())
        if kind == "ExpressionWithUnresolvedIdentifier":
            raise _refusal("identifier(…)")
        if kind == "UnresolvedFunction":
            _check_function(spark, _texts(part.nameParts()))
        elif kind == "UnresolvedGenerator":
            _check_function(spark, _texts(part.name().nameParts()))
        elif kind == "UnresolvedTableValuedFunction":
            name = ".".join(_texts(part.name())).lower()
            if name not in TABLE_FUNCTIONS.split():
                raise _refusal(f"the table function {name}")
        elif kind in ("UnresolvedRelation", "UnresolvedTable", "UnresolvedTableOrView", "UnresolvedView"):
            _check_relation(spark, _texts(part.multipartIdentifier()))
            if kind == "UnresolvedRelation" and not part.options().isEmpty():
                raise _refusal("a table with options")


def _refusal(what: str) -> UsageError:
    return UsageError(
        f"`highwater query` only reads tables and views of the lake, and this is more: {printable(what)}. "
        "Nothing of it has run. Whoever knows what it does may say --unsafe."
    )


def _check_function(spark, name: list[str]) -> None:
    """Refuse a function that is not Spark's own, and those of Spark that do more than work on their arguments."""
    identifier = getattr(spark._jvm, f"{CATALYST}.FunctionIdentifier")(name[-1])
    is_own = len(name) == 1 and spark._jsparkSession.sessionState().functionRegistry().functionExists(identifier)
    if not is_own or name[-1].lower() in REACHING_OUT.split():
        raise _refusal(f"the function {'.'.join(name)}")


def _check_relation(spark, name: list[str]) -> None:
    """Refuse a relation of a schema that is not there: Spark would take it for a format and the name for a path."""
    if len(name) > 1 and not spark.catalog.databaseExists(".".join(name[:-1])):
        raise _refusal(f"reading {'.'.join(name)}, which is in no schema of the lake")


def _parts(spark, plan) -> Iterator:
    """Yield every plan and expression that a parsed plan holds, wherever it is held: in lists, options, pairs too."""
    waiting = [plan]
    while waiting:
        part = waiting.pop()
        if _is(spark, part, "trees.TreeNode"):
            yield part
        if _is(spark, part, "scala.collection.Iterable"):
            waiting += _each(part.iterator())
        elif _is(spark, part, "scala.Product"):
            waiting += _each(part.productIterator())


def _each(iterator) -> Iterator:
    while iterator.hasNext():
        item = iterator.next()
        if hasattr(item, "_target_id"):  # what is left out are texts and numbers
            yield item


def _is(spark, part, kind: str) -> bool:
    from py4j.java_gateway import is_instance_of

    return is_instance_of(spark._sc._gateway, part, kind if kind.startswith("scala.") else f"{CATALYST}.{kind}")


def _texts(sequence) -> list[str]:
    return [sequence.apply(place) for place in range(sequence.size())]
