# Starts an executor of Spark's in an image that has PySpark from a wheel; the variables are Spark's own.
set -eu
spark=$(python -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
options=$(mktemp)
env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p' >"$options"
# An executor puts the driver's jars where it is started.
cd "$(mktemp -d)"
exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" @"$options" \
  -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
  -cp "${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$spark/jars/*${SPARK_DIST_CLASSPATH:+:$SPARK_DIST_CLASSPATH}" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
