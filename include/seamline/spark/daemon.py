"""The parent of Spark's Python workers: PySpark's own, found where it is installed."""

from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
