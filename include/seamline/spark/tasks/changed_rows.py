"""What changes take away and add to a table, in Spark: all rows of the keys in question, in the order of the log."""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from seamline.model.compile.changes.changes_sql import (
    GREATEST,
    changes_sql,
    contributions_sql,
    list_image_fields,
)
from seamline.model.compile.changes.compiled_changelog import DELETED, CompiledChangelog
from seamline.model.compile.derived_rows import side_rows_sql
from seamline.spark.tasks.derived_rows import SPARK
from seamline.spark.tasks.measures import quote_column


def read_changed_rows(rows: DataFrame, changelog: CompiledChangelog) -> DataFrame:
    """Return those rows of the master that are changes' records, with the columns that a changelog reads."""
    name = f"seamline_rows_of_{changelog.name}"
    rows.createOrReplaceTempView(name)
    return rows.sparkSession.sql(side_rows_sql(changelog, changelog.sides[0], name, SPARK))


def blank_images(rows: DataFrame, changelog: CompiledChangelog) -> DataFrame:
    """Return what is known before any row: nothing."""
    order = changelog.changes.order
    types = {
        **{each.name: each.type.spark for each in list_image_fields(changelog)},
        GREATEST: order.type.spark if order else "BIGINT",
        DELETED: "BOOLEAN",
    }
    return rows.sparkSession.createDataFrame(
        [], ", ".join(f"{quote_column(name)} {type}" for name, type in types.items())
    )


def keep_keys(rows: DataFrame, keys: DataFrame, changelog: CompiledChangelog) -> DataFrame:
    """Keep rows of the keys that others have; NULL is a key like any other."""
    names = [quote_column(each.name) for each in changelog.changes.key]
    sought = keys.select(
        [f.col(name).alias(f"_key_{number}") for number, name in enumerate(names)]
    ).distinct()
    same = [f.col(name).eqNullSafe(f.col(f"_key_{number}")) for number, name in enumerate(names)]
    return rows.join(sought, reduce(and_, same), "left_semi")


def contribute(images: DataFrame, rows: DataFrame, changelog: CompiledChangelog) -> DataFrame:
    """Return what the changes among rows take away and add, by what was known before all of them."""
    known, new = f"seamline_images_of_{changelog.name}", f"seamline_changes_of_{changelog.name}"
    images.createOrReplaceTempView(known)
    rows.createOrReplaceTempView(new)
    changes = changes_sql(changelog, known, new, SPARK)
    return rows.sparkSession.sql(contributions_sql(changelog, f"({changes})", SPARK))
