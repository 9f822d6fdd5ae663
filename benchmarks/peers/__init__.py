"""What others would write by hand for the same question.

Flink is a JVM that the benchmarks drive themselves (flink.py). A peer on Spark is a program of its own. It gets
``BROKERS TOPIC FOLDER COUNT EPOCH``, works until it has read COUNT records, and prints a line of JSON for each epoch:
when it was over, and how many records were read by then.
"""
