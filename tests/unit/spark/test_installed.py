"""PySpark is imported from where it is installed, not from the zip of sources that Spark names first."""

from pathlib import Path

import pytest

from seamline.spark import drop_pyspark_zips


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with a PySpark, and the zip of its sources."""
    package = tmp_path / "site-packages" / "pyspark"
    (package / "python" / "lib").mkdir(parents=True)
    (package / "__init__.py").touch()
    for name in ("pyspark.zip", "py4j-1-src.zip"):
        (package / "python" / "lib" / name).touch()
    return package.parent


def test_the_zips_of_an_installed_package_are_left_out(site: Path) -> None:
    """What else is on the path stays where it is."""
    zips = [str(site / "pyspark" / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-1-src.zip")]
    assert drop_pyspark_zips(["/job", *zips, "/more.zip", str(site)]) == ["/job", "/more.zip", str(site)]


def test_the_zips_of_another_spark_stay(site: Path, tmp_path: Path) -> None:
    """Of a Spark that SPARK_HOME names, or where no PySpark is installed, the zip is the one that fits."""
    path = [str(tmp_path / "spark" / "python" / "lib" / "pyspark.zip"), str(site)]
    assert drop_pyspark_zips(path) == path
    assert drop_pyspark_zips(path[:1]) == path[:1]
