{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* Prefix of the names of all objects of this release. */}}
{{- define "railhead.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains "railhead" .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-railhead" .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of one component. Call with (dict "root" $ "component" "operator"). */}}
{{- define "railhead.selectorLabels" -}}
app.kubernetes.io/name: railhead
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* The labels of every object of one component. */}}
{{- define "railhead.labels" -}}
{{ include "railhead.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: railhead
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | quote }}
{{- end -}}

{{/* An image reference. Call with (dict "root" $ "image" .Values.operator.image). */}}
{{- define "railhead.image" -}}
{{- if .image.digest -}}
{{ printf "%s/%s@%s" .image.registry .image.repository .image.digest }}
{{- else -}}
{{ printf "%s/%s:%s" .image.registry .image.repository (default .root.Chart.AppVersion .image.tag) }}
{{- end -}}
{{- end -}}

{{/* The Secrets with registry credentials, as a pod spec lists them. */}}
{{- define "railhead.imagePullSecrets" -}}
{{- range .Values.imagePullSecrets }}
- name: {{ if kindIs "string" . }}{{ . | quote }}{{ else }}{{ .name | quote }}{{ end }}
{{- end }}
{{- end -}}

{{/* Labels and annotations of a component's pods. The chart's own take precedence over those in the values. Call with
(dict "root" $ "component" "operator" "values" .Values.operator "annotations" (dict ...)). */}}
{{- define "railhead.podMetadata" -}}
labels:
  {{- $labels := include "railhead.selectorLabels" . | fromYaml }}
  {{- toYaml (merge $labels (default dict .values.podLabels)) | nindent 2 }}
{{- with merge .annotations (default dict .values.podAnnotations) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The name of a component's ServiceAccount. Call with (dict "root" $ "component" "operator" "values" .Values.operator). */}}
{{- define "railhead.serviceAccountName" -}}
{{ default (printf "%s-%s" (include "railhead.fullname" .root) .component) .values.serviceAccount.name }}
{{- end -}}

{{/* A component's ServiceAccount, if the release creates it. Same arguments as railhead.serviceAccountName. */}}
{{- define "railhead.serviceAccount" -}}
{{- if .values.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "railhead.serviceAccountName" . }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "railhead.labels" . | nindent 4 }}
  {{- with .values.serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
---
{{- end }}
{{- end -}}

{{/* Name of the Secret with the key of all jobs' secrets; empty: jobs get no secrets. Rendering without access to the
cluster would create a different key each time, so it creates none. */}}
{{- define "railhead.jobKeySecret" -}}
{{- if and .Values.devicePlugin.jobSecrets.enabled .Values.devicePlugin.nodeFacts -}}
{{- if .Values.devicePlugin.jobSecrets.existingSecret -}}
{{ .Values.devicePlugin.jobSecrets.existingSecret }}
{{- else if lookup "v1" "Namespace" "" "kube-system" -}}
{{ include "railhead.fullname" . }}-job-key
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The operator's configuration file. */}}
{{- define "railhead.operatorConfig" -}}
{{ toYaml (dict
  "rendezvousPort" .Values.operator.rendezvousPort
  "excludedNamespaces" (include "railhead.excludedNamespaces" . | fromYamlArray)
  "namespaces" (default list .Values.operator.namespaces)
  "verdicts" .Values.operator.verdicts.enabled
  "tellMissedPods" (ne .Values.operator.webhook.missedPods "Ignore")
  "memlockRaised" .Values.devicePlugin.memlock
  "gangs" .Values.operator.gangs.enabled
  "gangKinds" (default list .Values.operator.gangs.kinds)
  "gangReserveAfter" .Values.operator.gangs.reserveAfter
  "rdmaResources" (default (list "rdma/*") .Values.operator.rdmaResources)
  "topology" .Values.operator.topology.enabled
  "publishTopology" .Values.operator.topology.publish
  "environment" (default dict .Values.operator.environment)) }}
{{- end -}}

{{/* Metadata of a kind: keeps it on uninstall, because deleting a kind deletes all of its objects. */}}
{{- define "railhead.keepKind" -}}
{{- if .Values.crds.keep -}}
annotations:
  helm.sh/resource-policy: keep
{{- end -}}
{{- end -}}

{{/* Annotations of an object that exists only while the nodes are cleaned up. Call with the hook and its weight. */}}
{{- define "railhead.forgetHook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end -}}

{{/* Selects the namespaces that the operator serves: all, or those in operator.namespaces, except kube-system, the
     release's own, and the excluded ones. */}}
{{- define "railhead.namespaceSelector" -}}
matchExpressions:
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: {{- include "railhead.excludedNamespaces" . | nindent 2 }}
{{- with .Values.operator.namespaces }}
- key: kubernetes.io/metadata.name
  operator: In
  values: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* RBAC rules for pods, Events and RailReports in the namespaces of the operator's jobs. */}}
{{- define "railhead.jobRights" -}}
{{- if or .Values.operator.verdicts.enabled .Values.operator.gangs.enabled }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create{{ if .Values.operator.gangs.enabled }}, patch{{ end }}]
{{- end }}
{{- if .Values.operator.verdicts.enabled }}
- apiGroups: [railhead.io]
  resources: [railreports]
  verbs: [list, create, patch]
- apiGroups: [railhead.io]
  resources: [railreports/status]
  verbs: [patch]
{{- end }}
{{- end -}}

{{- define "railhead.excludedNamespaces" -}}
{{- concat (list "kube-system" .Release.Namespace) (default list .Values.operator.webhook.excludedNamespaces) | uniq | toYaml -}}
{{- end -}}

{{/* CEL: whether the resource `name` is one of operator.rdmaResources. */}}
{{- define "railhead.isRdma" -}}
{{- $tests := list -}}
{{- range default (list "rdma/*") .Values.operator.rdmaResources -}}
{{- $tests = append $tests (hasSuffix "*" . | ternary (printf "name.startsWith('%s')" (trimSuffix "*" .)) (printf "name == '%s'" .)) -}}
{{- end -}}
{{- if eq (len $tests) 1 }}{{ first $tests }}{{ else }}({{ join " || " $tests }}){{ end -}}
{{- end -}}

{{/* CEL: whether a container requests any RDMA resource. A quantity of "0" is not a request. Call with (dict "root" $ "of" "c"). */}}
{{- define "railhead.containerAsksForRdma" -}}
{{- $is := include "railhead.isRdma" .root -}}
{{ .of }}.?resources.?limits.orValue({}).exists(name, {{ $is }} && string({{ .of }}.resources.limits[name]) != '0') || {{ .of }}.?resources.?requests.orValue({}).exists(name, {{ $is }} && string({{ .of }}.resources.requests[name]) != '0')
{{- end -}}

{{/* CEL: whether any container of a pod spec requests one. Call with (dict "root" $ "of" "object.spec"). */}}
{{- define "railhead.asksForRdma" -}}
({{ .of }}.containers + {{ .of }}.?initContainers.orValue([])).exists(c, {{ include "railhead.containerAsksForRdma" (dict "root" .root "of" "c") }})
{{- end -}}

{{/* CEL: number of Jobs of a JobSet's replicatedJob that form one job. Call with the labels of the object and the
annotations of its pod, as CEL expressions. */}}
{{- define "railhead.jobsTogether" -}}
({{ .annotations }}[?'railhead.io/rank-group'].orValue('') == 'job' || {{ .labels }}[?'jobset.sigs.k8s.io/jobset-name'].orValue('') == '' || !{{ .labels }}[?'jobset.sigs.k8s.io/replicatedjob-replicas'].orValue('').matches('^[1-9][0-9]{0,8}$') ? 1 : int({{ .labels }}['jobset.sigs.k8s.io/replicatedjob-replicas']))
{{- end -}}

{{/* CEL: whether mpirun starts the ranks in the pods of a spec, as jobs/mpirun.h determines it. Call with
(dict "of" "object.spec"). */}}
{{- define "railhead.startedByMpirun" -}}
({{ .of }}.?volumes.orValue([]).exists(v, v.name in ['mpi-ssh-auth', 'mpi-hostfile']) || {{ .of }}.containers.exists(c, c.?env.orValue([]).exists(e, e.name in ['OMPI_MCA_orte_default_hostfile', 'PRTE_MCA_prte_default_hostfile', 'I_MPI_HYDRA_HOST_FILE', 'HYDRA_HOST_FILE'])) || {{ .of }}.containers[0].?command.orValue([])[?0].orValue('').matches('(^|/)(mpirun|mpiexec|mpiexec[.]hydra|orterun|prterun|sshd)$'))
{{- end -}}

{{/* CEL: the patch that adds variables.ours to each container in a list that requests RDMA, except those that it has.
They come before the container's own variables, which may refer to them. Call with
(dict "root" $ "of" "containers"). */}}
{{- define "railhead.environmentPatch" -}}
object.spec.?{{ .of }}.orValue([]).transformList(i, c,
{{ include "railhead.containerAsksForRdma" (dict "root" .root "of" "c") }},
size(c.?env.orValue([])) == 0 ?
[JSONPatch{op: 'add', path: '/spec/{{ .of }}/' + string(i) + '/env', value: variables.ours}] :
variables.ours.filter(v, !c.env.exists(e, e.name == v.name)).reverse()
.map(v, JSONPatch{op: 'add', path: '/spec/{{ .of }}/' + string(i) + '/env/0', value: v})).flatten()
{{- end -}}

{{/* CEL: whether two maps are equal except for some keys. Call with (dict "new" "object.spec" "old" "oldObject.spec" "but" (list "a" "b")). */}}
{{- define "railhead.sameBut" -}}
dyn({{ .new }}).all(k, k in {{ toJson .but }} || (k in dyn({{ .old }}) && dyn({{ .new }})[k] == dyn({{ .old }})[k])) && dyn({{ .old }}).all(k, k in {{ toJson .but }} || k in dyn({{ .new }}))
{{- end -}}

{{/* CEL: whether an update leaves an object's metadata unchanged, except for some keys and for those that the API
server itself changes. Call with a list of keys. */}}
{{- define "railhead.sameMetadataBut" -}}
{{ include "railhead.sameBut" (dict "new" "object.metadata" "old" "oldObject.metadata" "but" (concat . (list "generation" "managedFields" "resourceVersion"))) }}
{{- end -}}

{{/* Variable of a policy: the nodes to which the token of a pod is bound. */}}
{{- define "railhead.nodesOfToken" -}}
name: nodes
expression: >-
  has(request.userInfo.extra) &&
  "authentication.kubernetes.io/node-name" in request.userInfo.extra ?
  request.userInfo.extra["authentication.kubernetes.io/node-name"] : []
{{- end -}}

{{/* Annotations of an object that exists only while `helm test` runs. Call with its hook weight. */}}
{{- define "railhead.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* Common part of the test's pods: the restricted Pod Security Standard, and no token. */}}
{{- define "railhead.testPod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with include "railhead.imagePullSecrets" . }}
imagePullSecrets: {{- . | nindent 0 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- if not .Values.openshift.enabled }}
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "railhead.testContainer" -}}
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
