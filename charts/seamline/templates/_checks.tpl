{{- /* What cannot be right is refused by the name of its value, before anything else is rendered. */ -}}
{{- define "seamline.checks" -}}
{{- if not (regexMatch "^[a-z]" .Release.Name) }}
{{- fail (printf "The release is called %s: services need a name that begins with a letter" .Release.Name) }}
{{- end }}
{{- if not .Values.pipelines }}
{{- fail "pipelines: no pipeline is listed, so no stream would run. List each by name: pipelines: [{name: orders}]" }}
{{- end }}
{{- $seen := dict }}
{{- range .Values.pipelines }}
{{- if not (kindIs "map" .) }}
{{- fail (printf "pipelines: %v is no entry with a name; write {name: %v}" . .) }}
{{- end }}
{{- $name := .name | default "" | toString }}
{{- if not (regexMatch "^[a-z][a-z0-9_]{0,62}$" $name) }}
{{- fail (printf "pipelines: %q is no name of a pipeline: small letters, digits and _, the first a letter" $name) }}
{{- end }}
{{- $object := include "seamline.pipeline" (list $ .) }}
{{- with index $seen $object }}
{{- fail (printf "pipelines: %s and %s would both be %s: a name in Kubernetes ends in no underscore. Give one of them a release of its own" . $name $object) }}
{{- end }}
{{- $_ := set $seen $object $name }}
{{- end }}
{{- if not .Values.warehouse }}
{{- fail "warehouse: where the tables are is not set; s3://BUCKET/PREFIX, as SEAMLINE_WAREHOUSE says it elsewhere" }}
{{- end }}
{{- range $place := prepend (values .Values.warehouses) .Values.warehouse }}
{{- if not (regexMatch "^(s3|gs|az|abfss)://." $place) }}
{{- fail (printf "warehouse: %s is no address of a bucket; a folder would be of one pod alone" $place) }}
{{- end }}
{{- end }}
{{- range $name, $_ := .Values.warehouses }}
{{- if not (regexMatch "^[a-z][a-z0-9_]{0,62}$" $name) }}
{{- fail (printf "warehouses: %q is no name of a pipeline" $name) }}
{{- end }}
{{- end }}
{{- if not .Values.kafka.existingSecret }}
{{- fail "kafka.existingSecret: the Secret that has Kafka's connection is not named; its key `connection` has what AIRFLOW_CONN_KAFKA_DEFAULT would have" }}
{{- end }}
{{- if not (regexMatch "^[a-z][a-z0-9_]*$" .Values.kafka.connection) }}
{{- fail (printf "kafka.connection: %q is no name of a connection: small letters, digits and _" .Values.kafka.connection) }}
{{- end }}
{{- range $name, $value := .Values.env }}
{{- if or (regexMatch "(?i)PASSWORD|SECRET|TOKEN|FERNET|ACCESS_KEY|PRIVATE|CREDENTIAL|^AIRFLOW_CONN_" $name) (regexMatch "://[^/@]*:[^/@]*@" (toString $value)) }}
{{- fail (printf "env.%s: looks like a secret, and values are kept in plain text; put it into a Secret and name that in envFrom" $name) }}
{{- end }}
{{- if regexMatch "^(SEAMLINE_HOME|SEAMLINE_PIPELINES|SEAMLINE_WAREHOUSE.*|SEAMLINE_POD_ID|SPARK_LOCAL_HOSTNAME|AWS_REGION|AWS_ENDPOINT_URL|AWS_ALLOW_HTTP)$" $name }}
{{- fail (printf "env.%s: the chart sets it, by warehouse, store or definitions" $name) }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.builds.conf }}
{{- if regexMatch "(?i)password|secret|token|access\\.key" $name }}
{{- fail (printf "builds.conf.%s: looks like a secret, and a ConfigMap is plain text; executors take keys from store.existingSecret" $name) }}
{{- end }}
{{- end }}
{{- if or (omit .Values.store "region" "endpoint" "allowHttp" "existingSecret") (omit .Values.kafka "connection" "existingSecret" "key") }}
{{- fail "store, kafka: the chart takes no keys; name a Secret in store.existingSecret and kafka.existingSecret" }}
{{- end }}
{{- if and .Values.definitions.existingConfigMap .Values.definitions.existingClaim }}
{{- fail "definitions: existingConfigMap and existingClaim are both set; definitions are in one place" }}
{{- end }}
{{- end -}}
