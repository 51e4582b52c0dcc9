# SPDX-License-Identifier: Apache-2.0
"""Evaluates whether OpenShift's SecurityContextConstraints admit a pod, by the documented rules: they set fields that
a pod leaves unset, and fields that it sets must be allowed. Needs no OpenShift."""

import copy

NAMESPACE_RANGE = range(1000680000, 1000690000)  # the annotation openshift.io/sa.scc.uid-range
NAMESPACE_LEVEL = "s0:c26,c15"  # openshift.io/sa.scc.mcs

# OpenShift's constraints, without the fields for users and priorities.
RESTRICTED_V2 = {
    "metadata": {"name": "restricted-v2"},
    "volumes": ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral",
                "persistentVolumeClaim", "projected", "secret"],
    "allowedCapabilities": ["NET_BIND_SERVICE"],
    "requiredDropCapabilities": ["ALL"],
    "allowPrivilegeEscalation": False,
    "seccompProfiles": ["runtime/default"],
    "runAsUser": {"type": "MustRunAsRange"},
    "seLinuxContext": {"type": "MustRunAs"},
    "fsGroup": {"type": "MustRunAs"},
    "supplementalGroups": {"type": "RunAsAny"},
}
ANYUID = {
    "metadata": {"name": "anyuid"},
    "volumes": RESTRICTED_V2["volumes"],
    "allowedCapabilities": [],
    "requiredDropCapabilities": ["MKNOD"],
    "allowPrivilegeEscalation": True,
    "runAsUser": {"type": "RunAsAny"},
    "seLinuxContext": {"type": "MustRunAs"},
    "fsGroup": {"type": "RunAsAny"},
    "supplementalGroups": {"type": "RunAsAny"},
}
PRIVILEGED = {
    "metadata": {"name": "privileged"},
    "volumes": ["*"],
    "allowHostDirVolumePlugin": True,
    "allowHostIPC": True,
    "allowHostNetwork": True,
    "allowHostPID": True,
    "allowHostPorts": True,
    "allowPrivilegedContainer": True,
    "allowPrivilegeEscalation": True,
    "allowedCapabilities": ["*"],
    "requiredDropCapabilities": [],
    "seccompProfiles": ["*"],
    "runAsUser": {"type": "RunAsAny"},
    "seLinuxContext": {"type": "RunAsAny"},
    "fsGroup": {"type": "RunAsAny"},
    "supplementalGroups": {"type": "RunAsAny"},
}


def with_token(spec):
    """Returns the pod's spec after the admission of service accounts, which runs before."""
    spec = copy.deepcopy(spec)
    if spec.get("automountServiceAccountToken", True):
        volume = {"name": "kube-api-access", "projected": {"sources": [{"serviceAccountToken": {}}]}}
        spec.setdefault("volumes", []).append(volume)
    return spec


def denied(scc, spec):
    """Returns why the constraints do not admit the pod; empty if they do."""
    reasons = []
    spec = with_token(spec)
    kinds = scc["volumes"]
    for volume in spec.get("volumes", []):
        kind = next(key for key in volume if key != "name")
        if "*" not in kinds and kind not in kinds:
            reasons.append(f"spec.volumes[{volume['name']}]: {kind} volumes are not allowed")
        elif kind == "hostPath" and not scc.get("allowHostDirVolumePlugin"):
            reasons.append(f"spec.volumes[{volume['name']}]: hostPath is not allowed")
    for field, flag in (("hostIPC", "allowHostIPC"), ("hostNetwork", "allowHostNetwork"),
                        ("hostPID", "allowHostPID")):
        if spec.get(field) and not scc.get(flag):
            reasons.append(f"spec.{field} is not allowed")
    of_pod = spec.get("securityContext") or {}
    for container in spec.get("initContainers", []) + spec["containers"]:
        reasons += _of_container(scc, of_pod, container)
    if scc["fsGroup"]["type"] == "MustRunAs" and "fsGroup" in of_pod:
        if of_pod["fsGroup"] not in NAMESPACE_RANGE:
            reasons.append(f"spec.securityContext.fsGroup: {of_pod['fsGroup']} is out of range")
    return reasons


def _of_container(scc, of_pod, container):
    own = container.get("securityContext") or {}
    where = f"spec.containers[{container['name']}].securityContext"

    def value(field):
        return own.get(field, of_pod.get(field))

    reasons = []
    if own.get("privileged") and not scc.get("allowPrivilegedContainer"):
        reasons.append(f"{where}.privileged is not allowed")
    # An unset field becomes false if true is not allowed.
    if own.get("allowPrivilegeEscalation") and not scc.get("allowPrivilegeEscalation", True):
        reasons.append(f"{where}.allowPrivilegeEscalation is not allowed")
    if scc.get("readOnlyRootFilesystem") and own.get("readOnlyRootFilesystem") is False:
        reasons.append(f"{where}.readOnlyRootFilesystem must be true")
    capabilities = own.get("capabilities") or {}
    required = scc.get("requiredDropCapabilities") or []
    allowed = (scc.get("allowedCapabilities") or []) + (scc.get("defaultAddCapabilities") or [])
    for added in capabilities.get("add", []):
        if "*" not in allowed and added not in allowed:
            reasons.append(f"{where}.capabilities.add: {added} is not allowed")
    for dropped in required:
        if capabilities.get("drop") and dropped not in capabilities["drop"]:
            reasons.append(f"{where}.capabilities.drop: {dropped} is required")
    for port in container.get("ports", []):
        if port.get("hostPort") and not scc.get("allowHostPorts"):
            reasons.append(f"{where}: host ports are not allowed")
    reasons += _of_user(scc["runAsUser"], value("runAsUser"), value("runAsNonRoot"), where)
    reasons += _of_selinux(scc["seLinuxContext"], value("seLinuxOptions"), where)
    return reasons + _of_seccomp(scc.get("seccompProfiles") or [], value("seccompProfile"), where)


def _of_user(rule, user, non_root, where):
    if rule["type"] == "MustRunAs" and user is not None and user != rule["uid"]:
        return [f"{where}.runAsUser: {user} is not {rule['uid']}"]
    if rule["type"] == "MustRunAs" and rule["uid"] == 0 and non_root:
        return [f"{where}.runAsNonRoot contradicts user 0"]
    if rule["type"] == "MustRunAsRange" and user is not None and user not in NAMESPACE_RANGE:
        return [f"{where}.runAsUser: {user} is not of the namespace's range"]
    return []


def _of_selinux(rule, options, where):
    """MustRunAs sets options that a pod leaves unset altogether, and compares all options that it sets."""
    if rule["type"] != "MustRunAs" or options is None:
        return []
    wanted = {"level": NAMESPACE_LEVEL} | (rule.get("seLinuxOptions") or {})
    return [
        f"{where}.seLinuxOptions.{field}: {options.get(field, '')!r} is not {wanted.get(field, '')!r}"
        for field in ("level", "role", "type", "user")
        if options.get(field, "") != wanted.get(field, "")
    ]


def _of_seccomp(allowed, profile, where):
    if profile is None or "*" in allowed:
        return []  # it becomes the first allowed value
    name = {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined"}.get(profile["type"])
    if name not in allowed:
        return [f"{where}.seccompProfile: {profile['type']} is not allowed"]
    return []
