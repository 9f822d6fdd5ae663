{{- define "seamline.name" -}}
{{- .Release.Name | replace "." "-" | trunc 24 | trimSuffix "-" -}}
{{- end -}}

{{- /* A pipeline's name as Kubernetes takes it: no underscore, and short enough for all that is named after it. */ -}}
{{- define "seamline.short" -}}
{{- $short := regexReplaceAll "-+$" (replace "_" "-" .) "" -}}
{{- if gt (len $short) 20 -}}
{{- $short = printf "%s-%s" ($short | trunc 13 | trimSuffix "-") (sha256sum . | trunc 6) -}}
{{- end -}}
{{- $short -}}
{{- end -}}

{{- /* (root, entry of pipelines) */ -}}
{{- define "seamline.pipeline" -}}
{{- printf "%s-%s" (include "seamline.name" (index . 0)) (include "seamline.short" (index . 1).name) -}}
{{- end -}}

{{- define "seamline.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "seamline.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "seamline.name" .) -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "seamline.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: seamline
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* (root, component, pipeline or "") */ -}}
{{- define "seamline.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: seamline
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- with index . 2 }}
seamline/pipeline: {{ . }}
{{- end }}
{{- end -}}

{{- define "seamline.podSecurity" -}}
runAsNonRoot: true
runAsUser: 50000
runAsGroup: 50000
fsGroup: 50000
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "seamline.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "seamline.definitionsPath" -}}
{{- $mounted := or .Values.definitions.existingConfigMap .Values.definitions.existingClaim -}}
{{- .Values.definitions.path | default (ternary "/opt/pipelines" "/opt/seamline/include/pipelines" (not (empty $mounted))) -}}
{{- end -}}

{{- /* What every process of ours reads; the same for Airflow, in values-airflow.yaml. */ -}}
{{- define "seamline.env" -}}
- name: SEAMLINE_HOME
  value: /srv/seamline/state
- name: SEAMLINE_PIPELINES
  value: {{ include "seamline.definitionsPath" . | quote }}
- name: SEAMLINE_WAREHOUSE
  value: {{ .Values.warehouse | quote }}
{{- range $name, $place := .Values.warehouses }}
- name: SEAMLINE_WAREHOUSE_{{ upper $name }}
  value: {{ $place | quote }}
{{- end }}
- name: SEAMLINE_POD_ID
  valueFrom:
    fieldRef: {fieldPath: metadata.uid}
# Executors in other pods find a driver by its address: the name of a pod is known in the pod alone.
- name: SPARK_LOCAL_HOSTNAME
  valueFrom:
    fieldRef: {fieldPath: status.podIP}
{{- with .Values.store.region }}
- name: AWS_REGION
  value: {{ . | quote }}
{{- end }}
{{- with .Values.store.endpoint }}
- name: AWS_ENDPOINT_URL
  value: {{ . | quote }}
{{- end }}
{{- if .Values.store.allowHttp }}
- name: AWS_ALLOW_HTTP
  value: "true"
{{- end }}
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "seamline.kafkaEnv" -}}
- name: AIRFLOW_CONN_{{ upper .Values.kafka.connection }}
  valueFrom:
    secretKeyRef:
      name: {{ .Values.kafka.existingSecret }}
      key: {{ .Values.kafka.key }}
{{- end -}}

{{- define "seamline.envFrom" -}}
{{- with .Values.store.existingSecret }}
- secretRef:
    name: {{ . }}
{{- end }}
{{- with .Values.envFrom }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "seamline.mounts" -}}
- name: home
  mountPath: /srv/seamline
- name: tmp
  mountPath: /tmp
{{- if or .Values.definitions.existingConfigMap .Values.definitions.existingClaim }}
- name: definitions
  mountPath: {{ include "seamline.definitionsPath" . }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "seamline.definitions" -}}
{{- with .Values.definitions.existingConfigMap }}
- name: definitions
  configMap:
    name: {{ . }}
{{- end }}
{{- with .Values.definitions.existingClaim }}
- name: definitions
  persistentVolumeClaim:
    claimName: {{ . }}
    readOnly: true
{{- end }}
{{- end -}}

{{- define "seamline.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{ toYaml . | indent 2 }}
{{- end }}
{{- end -}}

{{- define "seamline.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}
