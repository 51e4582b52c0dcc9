# SPDX-License-Identifier: Apache-2.0
"""The objects that the chart renders, and the values that it rejects, without a cluster."""

import copy
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

import scc
from helm import CHART, NAMESPACE, RELEASE, ROOT, helm, render

# All optional parts that can be enabled together, and most values changed.
EVERYTHING = """
imagePullSecrets: [registry]
devicePlugin:
  image: {registry: "registry.example:5000", repository: team/plugin, tag: v9, pullPolicy: Always}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
  nodeSelector: {example.com/rdma: "true"}
  affinity: {nodeAffinity: {}}
  metricsPort: 9999
  nodeFacts: false
  cdi: true
  config: {resources: [{name: rdma/fast, selectors: [{rails: [0]}], slots: 2}]}
operator:
  replicas: 1
  runAsUser: 1234
  environment: {NCCL_IB_TC: "106", NCCL_DEBUG: null}
  admissionPolicy: {enabled: true}
  rendezvousPort: 12345
  topology: {crd: false}
  webhook: {failurePolicy: Fail, timeoutSeconds: 3, excludedNamespaces: [monitoring],
            missedPods: Deny}
profiles: {crd: false}
metrics:
  podMonitor: {enabled: true, interval: 5s, labels: {release: prometheus}}
  rules: {enabled: true, labels: {release: prometheus}, runbooks: "https://runbooks.example/railhead/",
          disabled: [RailheadStraggler]}
dashboards: {namespace: grafana, annotations: {grafana_folder: Railhead}}
openshift: {enabled: true}
networkPolicy: {enabled: true, apiServerCidrs: [10.0.0.10/32],
                metricsNamespaces: {kubernetes.io/metadata.name: monitoring}}
"""

# Settings that clusters require of the pods of any chart.
SITE = """
imagePullSecrets: [first, {name: second}]
fullnameOverride: rails
criticalPodsQuota: true
devicePlugin:
  image: {digest: "sha256:%s", tag: v9}
  podLabels: {team: infra, app.kubernetes.io/name: not-ours}
  podAnnotations: {example.com/note: "1", prometheus.io/port: "7"}
  extraEnv: [{name: TZ, value: UTC}]
  serviceAccount: {create: false, name: theirs, annotations: {example.com/identity: x}}
  extraArgs: [--a=b]
  logLevel: error
  kubeletFolder: /var/lib/k0s/kubelet
operator:
  image: {digest: "sha256:%s"}
  podLabels: {team: infra}
  extraEnv: [{name: TZ, value: UTC}]
  extraArgs: [--c=d]
  serviceAccount: {name: mine, annotations: {example.com/identity: x}}
  topologySpreadConstraints:
  - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
""" % ("0" * 64, "1" * 64)

MEMLOCK = """
devicePlugin: {memlock: true}
"""

REFUSED = {
    "an unknown value": ("foo=1", "'foo'"),
    "an unknown value deep inside": ("operator.webhook.timeout=3", "/operator/webhook"),
    "a misspelt toleration": ("devicePlugin.tolerations[0].oprator=Exists", "'oprator'"),
    "a number in the environment": ("operator.environment.NCCL_IB_TC=106", "want string"),
    "a name that is no variable": ("operator.environment.1X=a", "'1X'"),
    "a rank for the whole cluster": ("operator.environment.RANK=0", "/operator/environment/RANK"),
    "a word for a number": ("operator.replicas=two", "want integer"),
    "no operator at all": ("operator.replicas=0", "minimum"),
    "an operator that is root": ("operator.runAsUser=0", "minimum"),
    "a port that is none": ("operator.rendezvousPort=65536", "maximum"),
    "a number for verdicts": ("operator.verdicts.enabled=1", "want boolean"),
    "a word for the policies": ("operator.admissionPolicy.enabled=on", "want boolean"),
    "a resource without a domain": ("operator.rdmaResources={hca}", "/operator/rdmaResources/0"),
    "GPUs for RDMA devices": ("operator.rdmaResources={nvidia.com/*}", "/operator/rdmaResources/0"),
    "all device classes for RDMA devices": (
        "operator.rdmaResources={deviceclass.resource.kubernetes.io/*}", "/operator/rdmaResources/0"),
    "a device class of GPUs for RDMA devices": (
        "operator.rdmaResources={deviceclass.resource.kubernetes.io/gpu.nvidia.com}",
        "/operator/rdmaResources/0"),
    "a resource of Kubernetes for RDMA devices": (
        "operator.rdmaResources={node.kubernetes.io/x}", "/operator/rdmaResources/0"),
    "one RDMA resource twice": (
        "operator.rdmaResources={rdma/*,rdma/*}", "/operator/rdmaResources"),
    "a word for gangs": ("operator.gangs.enabled=on", "want boolean"),
    "a kind that is no job": ("operator.gangs.kinds={Deployment}", "/operator/gangs/kinds/0"),
    "a wait without a unit": ("operator.gangs.reserveAfter=10", "/operator/gangs/reserveAfter"),
    "a topology that is published and not kept": (
        "operator.topology.publish=true", "/operator/topology/enabled"),
    "a word for whether agents tell": ("devicePlugin.nodeFacts=always", "want boolean"),
    "a metrics port that is none": ("devicePlugin.metricsPort=0", "minimum"),
    "the port of the probes": ("devicePlugin.metricsPort=8080", "/devicePlugin/metricsPort"),
    "a group without which nothing renders": ("operator.webhook=null", "missing property 'webhook'"),
    "an image without a registry": ("operator.image.registry=null", "missing property 'registry'"),
    "a selector's field that is none": (
        "devicePlugin.config.resources[0].selector.rails=0", "/devicePlugin/config/resources/0"),
    "no slots": ("devicePlugin.config.resources[0].slots=0", "minimum"),
    "a rail that node facts cannot hold": ("devicePlugin.config.rails[0].rail=64", "maximum"),
    "a network that is none": (
        "devicePlugin.config.resources[0].network=pod", "'host', 'attached', 'moved'"),
    "a role that is no rail": (
        "devicePlugin.config.resources[0].selectors[0].roles={representor}",
        "/resources/0/selectors/0/roles/0"),
    "ids of another form": (
        "devicePlugin.config.resources[0].deviceIds=pci", "'name', 'pciAddress'"),
    "an unknown policy": ("operator.webhook.failurePolicy=ignore", "'Ignore', 'Fail'"),
    "a timeout that the API server refuses": ("operator.webhook.timeoutSeconds=31", "maximum"),
    "a tag with a blank": ("operator.image.tag=a b", "/operator/image/tag"),
    "a word for a boolean": ("openshift.enabled=yes", "want boolean"),
    "a boolean for a group": ("openshift=true", "want object"),
    "memory that is no quantity": ("operator.resources.limits.memory=lots", "/limits/memory"),
    "a namespace to serve that is none": ("operator.namespaces={A}", "namespaces/0"),
    "a namespace that is none": ("operator.webhook.excludedNamespaces={A}", "excludedNamespaces/0"),
    "a policy for missed pods that is none": (
        "operator.webhook.missedPods=warn", "'Ignore', 'Warn', 'Deny'"),
    "a profile that the chart has not": ("profiles.shipped={dgx}", "/profiles/shipped/0"),
    "one profile twice": ("profiles.shipped={tcp-only,tcp-only}", "/profiles/shipped"),
    "a word for CDI": ("devicePlugin.cdi=on", "want boolean"),
    "a number for memlock": ("devicePlugin.memlock=1", "want boolean"),
    "a digest that is none": ("operator.image.digest=sha256:12", "/operator/image/digest"),
    "a folder that is no path": ("devicePlugin.kubeletFolder=kubelet", "/devicePlugin/kubeletFolder"),
    "an account of others without a name": (
        "operator.serviceAccount.create=false", "/operator/serviceAccount/name"),
    "a level that no log has": ("operator.logLevel=verbose", "/operator/logLevel"),
    "an argument that is none": ("operator.extraArgs={verbose}", "/operator/extraArgs/0"),
    "a folder of runbooks that is no URL": (
        "metrics.rules.runbooks=docs", "/metrics/rules/runbooks"),
    "an alert that is none of ours": ("metrics.rules.disabled={KubePodCrash}", "/metrics/rules/disabled/0"),
    "an address without its length": (
        "networkPolicy.apiServerCidrs={10.0.0.10}", "/networkPolicy/apiServerCidrs/0"),
    "a test of nothing": ("test.hcas=0", "minimum"),
    "a test of a resource without a domain": ("test.resource=hca", "/test/resource"),
    "a test of a resource of Kubernetes": ("test.resource=kubernetes.io/batch-cpu", "/test/resource"),
    "an interval with which rates over a minute are empty": (
        "metrics.podMonitor.interval=2m", "/metrics/podMonitor/interval"),
    "an interval that is just too long": ("metrics.podMonitor.interval=31s", "/metrics/podMonitor/interval"),
    "an interval without a unit": (
        "metrics.podMonitor.interval=15",
        "/metrics/podMonitor/interval",
    ),
}

# All host paths that the node agent may access: path to (mount path, read-only).
HOST_PATHS = {
    "/sys": ("/host/sys", True),
    "/dev": ("/host/dev", True),
    "/var/lib/kubelet/device-plugins": ("/var/lib/kubelet/device-plugins", False),
    "/var/lib/kubelet/pod-resources": ("/var/lib/kubelet/pod-resources", True),
}
# With CDI, also the folder where container runtimes look for its specs.
CDI_PATHS = HOST_PATHS | {"/var/run/cdi": ("/var/run/cdi", False)}


# Parts that values can only break if they are enabled.
OPTIONAL = ("--set=metrics.rules.enabled=true", "--set=metrics.podMonitor.enabled=true",
            "--set=networkPolicy.enabled=true", "--set=dashboards.enabled=true")


def leaves(values, path=""):
    """Yields path and value of each value that is no group of values."""
    for name, value in values.items():
        if isinstance(value, dict) and value and name not in ("environment", "nodeSelector", "resources", "labels"):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield path + name, value


class Checked:
    """Checks that the programs accept what the chart gives them: configuration and arguments."""

    PROGRAMS = ROOT / "build" / "release"
    PROBE = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}'

    def __init__(self, test):
        self._test = test
        self._accepted = set()

    def __call__(self, rendered):
        for item in yaml.load_all(rendered, yaml.CSafeLoader):
            data = item.get("data") or {} if item and item["kind"] == "ConfigMap" else {}
            for name, command in (
                ("operator.yaml", ("operator/railhead-operator", "mutate", "-f", "-")),
                ("agent.yaml", ("device-plugin/railhead-device-plugin", "discover", "--root=.")),
            ):
                if name in data and data[name] not in self._accepted:
                    self._run(command, data[name])
                    self._accepted.add(data[name])
            if item and item["kind"] in ("Deployment", "DaemonSet"):
                for container in item["spec"]["template"]["spec"]["containers"]:
                    for argument in container["args"]:
                        self._test.assertNotRegex(argument, "[=:]$", item["metadata"]["name"])

    def _run(self, command, configuration):
        program, *arguments = command
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "sys").mkdir()
            (pathlib.Path(folder) / "config.yaml").write_text(configuration)
            done = subprocess.run([self.PROGRAMS / program, *arguments, "--config=config.yaml"], cwd=folder,
                                  input=self.PROBE, capture_output=True, text=True, timeout=60, check=False)
        self._test.assertEqual(done.returncode, 0, f"{configuration}{done.stderr}")


# Rights to the reports that diagnosis writes besides Events.
REPORTS = {("railhead-operator", verb, "railreports", "") for verb in ("list", "create", "patch")} | {
    ("railhead-operator", "patch", "railreports/status", "")
}


class Values(unittest.TestCase):
    """values.yaml and values.schema.json."""

    def test_lint_passes(self):
        for values in ("", EVERYTHING, MEMLOCK):
            done = helm("lint", "--strict", CHART, values=values)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_bad_values_are_refused_by_name(self):
        for why, (setting, word) in REFUSED.items():
            with self.subTest(why):
                done = helm("template", "railhead", CHART, "--set", setting)
                self.assertNotEqual(done.returncode, 0, f"{setting} was accepted")
                self.assertIn("values don't meet the specifications of the schema", done.stderr)
                self.assertIn(word, done.stderr)

    def test_null_removes_any_list_or_map(self):
        check = Checked(self)
        for path, value in leaves(yaml.safe_load((CHART / "values.yaml").read_text())):
            if isinstance(value, (dict, list)):
                with self.subTest(path):
                    done = helm("template", RELEASE, CHART, *OPTIONAL, "--set", f"{path}=null")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    check(done.stdout)

    def test_no_value_that_a_program_needs_is_missing(self):
        """As after `helm upgrade --reuse-values` from a chart that did not have it."""
        check, refused = Checked(self), set()
        for path, value in leaves(yaml.safe_load((CHART / "values.yaml").read_text())):
            if isinstance(value, (dict, list)):
                continue
            with self.subTest(path):
                done = helm("template", RELEASE, CHART, *OPTIONAL, "--set", f"{path}=null")
                if done.returncode == 0:
                    check(done.stdout)
                else:
                    group, _, name = path.rpartition(".")
                    self.assertIn(f"at '/{group.replace('.', '/')}': missing property '{name}'", done.stderr)
                    refused.add(path)
        # Whoever has not heard of these wants the default, which is not what null means.
        self.assertLessEqual({
            "crds.keep", "dashboards.enabled", "devicePlugin.jobSecrets.enabled", "devicePlugin.nodeFacts",
            "devicePlugin.memlock", "devicePlugin.serviceAccount.create", "operator.serviceAccount.create",
            "operator.rendezvousPort", "operator.topology.crd", "operator.verdicts.enabled",
            "operator.webhook.failurePolicy", "profiles.crd", "test.timeoutSeconds"}, refused)

    def test_names_of_digits_stay_strings(self):
        values = EVERYTHING.replace("imagePullSecrets: [registry]", 'imagePullSecrets: ["456"]')
        done = helm("template", "123", CHART, "--namespace", "2024", values=values)
        self.assertEqual(done.returncode, 0, done.stderr)
        checked = 0

        def check(value, path):
            nonlocal checked
            if isinstance(value, list):
                for one in value:
                    check(one, path)
            elif isinstance(value, dict):
                for name, one in value.items():
                    if name in ("namespace", "name", "app.kubernetes.io/instance") and not isinstance(one, (dict, list)):
                        self.assertIsInstance(one, str, f"{path}.{name}")
                        checked += 1
                    check(one, f"{path}.{name}")

        for item in yaml.load_all(done.stdout, yaml.CSafeLoader):
            if item and item["kind"] != "CustomResourceDefinition":
                check(item, item["kind"])
        self.assertGreater(checked, 200)

    def test_schema_knows_and_explains_every_value(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        definitions = schema["$defs"]

        def compare(values, rule, path):
            rule = definitions[rule["$ref"].rsplit("/", 1)[1]] if "$ref" in rule else rule
            self.assertTrue(rule.get("description"), f"{path} has no description")
            if "properties" not in rule or "patternProperties" in rule:
                return
            self.assertIs(rule["additionalProperties"], False, f"{path} accepts unknown values")
            for name, value in values.items():
                self.assertIn(name, rule["properties"], f"the schema does not know {path}.{name}")
                if isinstance(value, dict):
                    compare(value, rule["properties"][name], f"{path}.{name}")

        compare(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "")

    def test_the_agents_configuration_has_the_agents_own_schema(self):
        values = json.loads((CHART / "values.schema.json").read_text())
        agent = json.loads((CHART.parents[1] / "device-plugin/config/config.schema.json").read_text())
        config = values["properties"]["devicePlugin"]["properties"]["config"]
        self.assertEqual(config["properties"], agent["properties"])
        for name, rule in agent["$defs"].items():
            self.assertEqual(values["$defs"][name], rule)

    def test_values_reach_the_objects(self):
        objects = render(EVERYTHING)
        agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
        self.assertEqual(agent["containers"][0]["image"], "registry.example:5000/team/plugin:v9")
        self.assertEqual(agent["containers"][0]["imagePullPolicy"], "Always")
        self.assertEqual(agent["imagePullSecrets"], [{"name": "registry"}])
        config = yaml.safe_load(objects["ConfigMap", "railhead-device-plugin"]["data"]["agent.yaml"])
        self.assertEqual(
            config, {"resources": [{"name": "rdma/fast", "selectors": [{"rails": [0]}], "slots": 2}]}
        )
        self.assertEqual(
            agent["tolerations"], [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
        )
        self.assertEqual(
            agent["nodeSelector"], {"kubernetes.io/os": "linux", "example.com/rdma": "true"}
        )
        operator = objects["Deployment", "railhead-operator"]["spec"]
        self.assertEqual(operator["replicas"], 1)
        self.assertNotIn(("PodDisruptionBudget", "railhead-operator"), objects)
        self.assertEqual(operator["template"]["spec"]["securityContext"]["runAsUser"], 1234)
        self.assertEqual(
            objects["ConfigMap", "railhead-dashboards"]["metadata"]["namespace"], "grafana"
        )
        for webhook in objects["MutatingWebhookConfiguration", f"{NAMESPACE}-railhead-operator"][
            "webhooks"
        ]:
            self.assertEqual((webhook["failurePolicy"], webhook["timeoutSeconds"]), ("Fail", 3))
            self.assertEqual(
                webhook["namespaceSelector"]["matchExpressions"][0]["values"],
                ["kube-system", NAMESPACE, "monitoring"],
            )
        config = yaml.safe_load(objects["ConfigMap", "railhead-operator"]["data"]["operator.yaml"])
        self.assertEqual(config["environment"], {"NCCL_IB_TC": "106"})
        self.assertEqual(config["rendezvousPort"], 12345)

    def test_a_changed_configuration_restarts_the_operator_and_nothing_else_does(self):
        def pods(values, name):
            return render(values)[name]["spec"]["template"]

        changed = 'operator: {environment: {NCCL_IB_TC: "106"}}'
        operator, agent = ("Deployment", "railhead-operator"), (
            "DaemonSet",
            "railhead-device-plugin",
        )
        self.assertNotEqual(pods("", operator), pods(changed, operator))
        self.assertEqual(pods("", agent), pods(changed, agent))
        self.assertEqual(pods("", operator), pods("dashboards: {enabled: false}", operator))

    def test_no_plugin_of_the_container_runtime_on_openshift(self):
        done = helm("template", "railhead", CHART, values=MEMLOCK + "openshift: {enabled: true}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("devicePlugin.memlock: OpenShift does not let pods connect", done.stderr)
        self.assertIn("MachineConfig", done.stderr)

    def test_what_sites_ask_of_any_chart(self):
        objects = render(SITE)
        named_otherwise = {name for _, name in objects if "rails" not in name and name != "mine"}
        self.assertEqual({name.split(".", 1)[1] for name in named_otherwise}, {"railhead.io"})
        agent = objects["DaemonSet", "rails-device-plugin"]["spec"]["template"]
        operator = objects["Deployment", "rails-operator"]["spec"]["template"]
        for pod in (agent, operator):
            self.assertEqual(pod["metadata"]["labels"]["team"], "infra")
            self.assertEqual(pod["metadata"]["labels"]["app.kubernetes.io/name"], "railhead")
            self.assertEqual(
                pod["spec"]["imagePullSecrets"], [{"name": "first"}, {"name": "second"}]
            )
            self.assertIn(
                {"name": "TZ", "value": "UTC"}, pod["spec"]["containers"][0]["env"]
            )
        self.assertEqual(agent["metadata"]["annotations"]["example.com/note"], "1")
        self.assertEqual(agent["metadata"]["annotations"]["prometheus.io/port"], "9401")
        container = agent["spec"]["containers"][0]
        self.assertEqual(
            container["image"], f"docker.io/railhead/device-plugin@sha256:{'0' * 64}"
        )
        self.assertIn("--a=b", container["args"])
        self.assertIn("--log-level=error", container["args"])
        paths = {volume["hostPath"]["path"] for volume in agent["spec"]["volumes"]
                 if "hostPath" in volume}
        # Device plugins are where every kubelet has them.
        self.assertLess({"/var/lib/kubelet/device-plugins",
                         "/var/lib/k0s/kubelet/pod-resources"}, paths)
        self.assertIn("--c=d", operator["spec"]["containers"][0]["args"])
        self.assertIn("--log-level=info", operator["spec"]["containers"][0]["args"])
        self.assertEqual(operator["spec"]["topologySpreadConstraints"][0]["maxSkew"], 2)
        # The rights are bound to the service account of the pods.
        self.assertEqual(agent["spec"]["serviceAccountName"], "theirs")
        self.assertNotIn(("ServiceAccount", "theirs"), objects)
        self.assertEqual(operator["spec"]["serviceAccountName"], "mine")
        self.assertEqual(
            objects["ServiceAccount", "mine"]["metadata"]["annotations"],
            {"example.com/identity": "x"},
        )
        subjects = {
            subject["name"]
            for (kind, _), item in objects.items()
            if kind.endswith("RoleBinding")
            for subject in item["subjects"]
        }
        self.assertEqual(subjects, {"theirs", "mine", "rails-forget-nodes"} & subjects)
        self.assertLessEqual({"theirs", "mine"}, subjects)
        policy = objects["ValidatingAdmissionPolicy", f"{NAMESPACE}-rails-device-plugin"]["spec"]
        self.assertIn(":theirs", policy["matchConditions"][0]["expression"])
        quota = objects["ResourceQuota", "rails-critical-pods"]["spec"]
        self.assertEqual(
            quota["scopeSelector"]["matchExpressions"][0]["values"],
            ["system-node-critical", "system-cluster-critical"],
        )

    def test_namespaces_take_the_rights_of_the_cluster_and_are_not_for_gangs(self):
        some = render("operator: {namespaces: [team-a]}")
        everywhere = {what for rule in some["ClusterRole", f"{NAMESPACE}-railhead-operator"]["rules"]
                      for what in rule["resources"]}
        self.assertFalse(everywhere & {"pods", "events", "railreports"}, everywhere)
        self.assertEqual(rights(some), rights(render()))  # by a Role
        self.assertEqual(some["Role", f"{NAMESPACE}-railhead-operator"]["metadata"]["namespace"], "team-a")
        without = render("operator: {namespaces: [team-a], verdicts: {enabled: false}}")
        self.assertNotIn(("Role", f"{NAMESPACE}-railhead-operator"), without)
        done = helm("template", "railhead", CHART,
                    values="operator: {namespaces: [team-a], gangs: {enabled: true}}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("operator.namespaces: cannot be set with operator.gangs.enabled", done.stderr)

    def test_interfaces_move_by_cdi_alone(self):
        values = """
devicePlugin: {config: {resources: [{name: rdma/hca, network: moved, moveInterfaces: true}]}}
"""
        done = helm("template", "railhead", CHART, values=values)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("moveInterfaces of rdma/hca needs devicePlugin.cdi: true", done.stderr)
        render(values, "--set=devicePlugin.cdi=true")

    def test_policies_are_for_servers_that_know_them(self):
        values = "operator: {admissionPolicy: {enabled: true}}"
        kinds = {kind for kind, _ in render(values, "--kube-version=1.36")}
        self.assertIn("MutatingAdmissionPolicyBinding", kinds)
        done = helm("template", "railhead", CHART, "--kube-version=1.35.9", values=values)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("operator.admissionPolicy.enabled: needs Kubernetes 1.36", done.stderr)

    def test_optional_parts_are_absent_unless_asked_for(self):
        self.assertNotIn(("DaemonSet", "railhead-memlock"), render())
        kinds = {kind for kind, _ in render()}
        self.assertNotIn("PodMonitor", kinds)
        self.assertNotIn("MutatingAdmissionPolicy", kinds)
        self.assertNotIn("SecurityContextConstraints", kinds)
        self.assertNotIn("NetworkPolicy", kinds)
        self.assertNotIn(
            ("ConfigMap", "railhead-dashboards"), render("dashboards: {enabled: false}")
        )

    def test_network_policies_let_in_who_must_come_in(self):
        objects = render(EVERYTHING)
        by_port = {
            (name, port["port"]): rule.get("from")
            for (kind, name), item in objects.items()
            if kind == "NetworkPolicy" and name != "railhead-test-rank"
            for rule in item["spec"]["ingress"]
            for port in rule["ports"]
        }
        prometheus = [{"namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
        judge = {"app.kubernetes.io/name": "railhead", "app.kubernetes.io/instance": RELEASE,
                 "app.kubernetes.io/component": "test"}
        self.assertEqual(by_port, {
            ("railhead-operator", 8080): prometheus,
            ("railhead-operator", 9443): [{"ipBlock": {"cidr": "10.0.0.10/32"}}],
            ("railhead-device-plugin", 9999): [*prometheus, {"podSelector": {"matchLabels": judge}}],
        })
        # The pod of `helm test` connects to the agents.
        self.assertLessEqual(judge.items(), objects["Pod", "railhead-test"]["metadata"]["labels"].items())
        # The policies select these pods, and each port is one that the pods have.
        for (name, port) in by_port:
            selector = objects["NetworkPolicy", name]["spec"]["podSelector"]["matchLabels"]
            kind = "Deployment" if name == "railhead-operator" else "DaemonSet"
            template = objects[kind, name]["spec"]["template"]
            self.assertEqual(template["metadata"]["labels"], selector)
            ports = [p["containerPort"] for p in template["spec"]["containers"][0]["ports"]]
            self.assertIn(port, ports)
        # The ranks of `helm test` connect to each other at any port, and the pod that evaluates the result to both.
        ranks = objects["NetworkPolicy", "railhead-test-rank"]["spec"]
        of_rank = objects["StatefulSet", "railhead-test-rank"]["spec"]["template"]["metadata"]["labels"]
        self.assertEqual(ranks["podSelector"]["matchLabels"], of_rank)
        self.assertEqual(ranks["policyTypes"], ["Ingress"])
        self.assertEqual(ranks["ingress"], [{"from": [{"podSelector": {"matchLabels": judge}},
                                                      {"podSelector": {"matchLabels": of_rank}}]}])
        anybody = render("networkPolicy: {enabled: true}\ndevicePlugin: {memlock: true}")
        rules = anybody["NetworkPolicy", "railhead-memlock"]["spec"]["ingress"]
        self.assertEqual(rules, [{"ports": [{"protocol": "TCP", "port": 8080}]}])

    def test_another_release_name_collides_with_nothing(self):
        done = helm("template", "second", CHART, "--namespace", "other", values=EVERYTHING)
        second = {
            (item["kind"], item["metadata"]["name"])
            for item in yaml.safe_load_all(done.stdout)
            if item and "namespace" not in item["metadata"]
        }
        first = {
            (kind, name)
            for (kind, name), item in render(EVERYTHING).items()
            if "namespace" not in item["metadata"]
        }
        self.assertTrue(first)
        self.assertEqual(len(first), len(second))
        self.assertFalse(first & second)


def rights(objects):
    """Returns all rights: {(account, verb, resource, name or '')}."""
    found = set()
    for (kind, _), item in objects.items():
        if kind not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        role = objects.get((item["roleRef"]["kind"], item["roleRef"]["name"]), {})
        for rule in role.get("rules") or []:
            for verb in rule["verbs"]:
                for what in rule.get("resources", []):
                    for name in rule.get("resourceNames", [""]):
                        for subject in item.get("subjects", []):
                            found.add((subject["name"], verb, what, name))
    return found


class Privileges(unittest.TestCase):
    """A change that extends the pods' rights must also change this test, and give the reason."""

    def setUp(self):
        # Agents publish node facts in some variants; only the last one enables the runtime's plugin.
        self.variants = [render(), render(EVERYTHING), render(MEMLOCK)]

    def pods(self):
        for objects in self.variants:
            for (kind, name), item in objects.items():
                if kind in ("DaemonSet", "Deployment", "Job", "StatefulSet"):
                    yield name, item["spec"]["template"]["spec"]
                elif kind == "Pod":
                    yield name, item["spec"]

    def test_no_pod_shares_the_host_and_no_container_has_privileges(self):
        seen = set()
        for name, pod in self.pods():
            seen.add(name)
            for field in (
                "hostNetwork",
                "hostPID",
                "hostIPC",
                "hostUsers",
                "shareProcessNamespace",
            ):
                self.assertNotIn(field, pod, name)
            self.assertEqual(
                pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, name
            )
            self.assertNotIn("initContainers", pod, name)
            for container in pod["containers"]:
                security = container["securityContext"]
                self.assertIs(security["privileged"], False, name)
                self.assertIs(security["allowPrivilegeEscalation"], False, name)
                self.assertIs(security["readOnlyRootFilesystem"], True, name)
                self.assertEqual(security["capabilities"], {"drop": ["ALL"]}, name)
                self.assertNotIn("volumeDevices", container, name)
                self.assertIn("limits", container["resources"], name)
        self.assertEqual(
            seen, {"railhead-device-plugin", "railhead-memlock", "railhead-operator",
                   "railhead-forget-nodes", "railhead-test", "railhead-test-rank"}
        )

    def test_the_pods_of_the_test_have_no_right_and_no_token(self):
        for values in ("", "openshift: {enabled: true}"):
            objects = render(values)
            pods = {"rank": objects["StatefulSet", "railhead-test-rank"]["spec"]["template"]["spec"],
                    "check": objects["Pod", "railhead-test"]["spec"]}
            for name, pod in pods.items():
                self.assertIs(pod["automountServiceAccountToken"], False, name)
                self.assertNotIn("serviceAccountName", pod)
                self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
                for volume in pod["volumes"]:
                    self.assertLessEqual(set(volume) - {"name"}, {"configMap", "emptyDir"})
                if values:
                    self.assertEqual(scc.denied(scc.RESTRICTED_V2, pod), [], name)
            asked = {name: pod["containers"][0]["resources"]["limits"].get("rdma/hca") for name, pod in pods.items()}
            # The pod that checks the result must also run on nodes without HCAs.
            self.assertEqual(asked, {"rank": 1, "check": None})

    def test_the_runtimes_plugin_has_the_folder_of_its_socket_and_nothing_else(self):
        pod = self.variants[-1]["DaemonSet", "railhead-memlock"]["spec"]["template"]["spec"]
        self.assertEqual(pod["volumes"], [
            {"name": "nri", "hostPath": {"path": "/var/run/nri", "type": "DirectoryOrCreate"}}])
        container, = pod["containers"]
        self.assertEqual(container["volumeMounts"], [
            {"name": "nri", "mountPath": "/var/run/nri", "readOnly": True}])
        self.assertNotIn("env", container)
        self.assertEqual(container["args"], ["memlock", "--log-level=info"])
        self.assertIs(pod["automountServiceAccountToken"], False)
        self.assertNotIn("serviceAccountName", pod)
        for objects, told in zip(self.variants, (False, False, True)):
            agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
            self.assertEqual("--memlock-raised" in agent["containers"][0]["args"], told)

    def test_the_node_agent_sees_four_folders_of_its_host_and_one_more_with_cdi(self):
        for objects, paths in zip(self.variants, (HOST_PATHS, CDI_PATHS)):
            pod = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
            mounts = {mount["name"]: mount for mount in pod["containers"][0]["volumeMounts"]}
            self.assertEqual(len(mounts), len(pod["volumes"]))
            seen = {}
            for volume in pod["volumes"]:
                mount = mounts[volume["name"]]
                if volume["name"] == "config":
                    self.assertEqual(set(volume), {"name", "configMap"})
                    self.assertTrue(mount["readOnly"])
                    continue
                self.assertEqual(set(volume), {"name", "hostPath"})
                self.assertNotIn("mountPropagation", mount)
                seen[volume["hostPath"]["path"]] = (
                    mount["mountPath"],
                    mount.get("readOnly", False),
                )
            self.assertEqual(seen, paths)
            told = "--cdi-dir=/var/run/cdi" in pod["containers"][0]["args"]
            self.assertEqual(told, paths is CDI_PATHS)

    def test_the_node_agent_has_a_token_only_to_tell_of_its_node(self):
        for tells, objects in ((True, self.variants[0]), (False, self.variants[1])):
            agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]
            self.assertIs(agent["template"]["spec"]["automountServiceAccountToken"], tells)
            self.assertNotIn("maxSurge", agent["updateStrategy"]["rollingUpdate"])
            account = objects["ServiceAccount", agent["template"]["spec"]["serviceAccountName"]]
            self.assertIs(account["automountServiceAccountToken"], False)
            # Earlier revisions may have left something on the nodes.
            self.assertIn(("Job", "railhead-forget-nodes"), objects)
        # Whether an earlier revision had one, only the cluster tells: apiserver_test.
        upgraded = render("devicePlugin: {nodeFacts: false}", "--is-upgrade")
        self.assertEqual({name for _, name in upgraded if "forget" in name},
                         {"railhead-forget-nodes", f"{NAMESPACE}-railhead-forget-nodes"})

    def test_the_job_after_the_uninstall_is_not_root_and_sees_no_host_path(self):
        for values in ("", "openshift: {enabled: true}"):
            pod = render(values)["Job", "railhead-forget-nodes"]["spec"]["template"]["spec"]
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
            self.assertNotIn("volumes", pod)

    def test_the_job_after_the_uninstall_runs_where_the_operator_did(self):
        """Where all taints were tolerated, it could be sent to a dead node, or to one of another architecture."""
        for values in ("", """
operator:
  nodeSelector: {kubernetes.io/arch: arm64}
  tolerations: [{key: control, operator: Exists}]
  affinity: {nodeAffinity: {}}
"""):
            objects = render(values)
            job = objects["Job", "railhead-forget-nodes"]["spec"]["template"]["spec"]
            operator = objects["Deployment", "railhead-operator"]["spec"]["template"]["spec"]
            for field in ("nodeSelector", "tolerations", "affinity"):
                self.assertEqual(job.get(field), operator.get(field), field)

    def test_what_cleans_up_exists_after_the_uninstall_only(self):
        hooks = [
            name
            for name, item in render().items()
            if item["metadata"].get("annotations", {}).get("helm.sh/hook") == "post-delete"
        ]
        cluster = f"{NAMESPACE}-railhead-forget-nodes"
        self.assertEqual(
            set(hooks),
            {
                ("ServiceAccount", "railhead-forget-nodes"),
                ("ClusterRole", cluster),
                ("ClusterRoleBinding", cluster),
                ("Job", "railhead-forget-nodes"),
            },
        )

    def test_the_operator_is_never_root_and_sees_no_host_path(self):
        for objects in self.variants:
            pod = objects["Deployment", "railhead-operator"]["spec"]["template"]["spec"]
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
            for volume in pod["volumes"]:
                self.assertEqual(set(volume), {"name", "configMap"})
        self.assertNotIn(
            "runAsUser",
            render()["Deployment", "railhead-operator"]["spec"]["template"]["spec"][
                "securityContext"
            ],
        )

    def test_verdicts_and_gangs_cost_rights_only_where_they_are_enabled(self):
        watches = {("railhead-operator", verb, "pods", "") for verb in ("list", "watch")} | {
            ("railhead-operator", "create", "events", "")
        }
        without = "operator: {verdicts: {enabled: false}}"
        more = rights(render()) - rights(render(without))
        self.assertEqual(more, watches | REPORTS)
        gangs = "operator: {verdicts: {enabled: false}, gangs: {enabled: true}}"
        more = rights(render(gangs)) - rights(render(without))
        self.assertEqual(
            more,
            watches | {
                ("railhead-operator", "patch", "pods", ""),
                ("railhead-operator", "get", "pods", ""),
                ("railhead-operator", "create", "pods/eviction", ""),
                ("railhead-operator", "patch", "pods/status", ""),
                ("railhead-operator", "patch", "events", ""),
            },
        )

    def test_the_topology_costs_rights_only_where_it_is_enabled(self):
        name = "railhead-operator"
        keeps = {(name, verb, "fabrictopologies", "") for verb in ("list", "watch", "create")} | {
            (name, "patch", "fabrictopologies/status", "")
        }
        more = rights(render("operator: {topology: {enabled: true}}")) - rights(render())
        self.assertEqual(more, keeps)
        more = rights(render("operator: {topology: {enabled: true, publish: true}}"))
        self.assertEqual(
            more - rights(render()),
            keeps
            | {(name, "patch", "nodes", "")}
            | {(name, verb, "topologies", "") for verb in ("create", "patch")}
            | {(name, verb, "hypernodes", "") for verb in ("list", "create", "patch", "delete")},
        )

    def test_one_list_says_what_rdma_is(self):
        """The operator, its webhook and every policy use the same list."""
        names = ["rdma/*", "nvidia.com/hostdev", "deviceclass.resource.kubernetes.io/roce-nic"]
        objects = render(
            yaml.safe_dump(
                {
                    "operator": {
                        "rdmaResources": names,
                        "admissionPolicy": {"enabled": True},
                    }
                }
            )
        )
        asks = ("(name.startsWith('rdma/') || name == 'nvidia.com/hostdev'"
                " || name == 'deviceclass.resource.kubernetes.io/roce-nic')")
        seen = 0
        for (kind, name), item in objects.items():
            if kind == "ConfigMap" and "operator.yaml" in item.get("data", {}):
                config = yaml.safe_load(item["data"]["operator.yaml"])
                self.assertEqual(config["rdmaResources"], names)
            text = json.dumps(item)
            if kind.endswith(("WebhookConfiguration", "AdmissionPolicy")) and "rdma/" in text:
                seen += 1
                self.assertEqual(text.count("startsWith('rdma/')"), text.count(asks), name)
                self.assertGreater(text.count(asks), 0, name)
        self.assertEqual(seen, 4)

    def test_the_operator_and_the_agents_have_these_rights(self):
        operator = {
            ("railhead-operator", verb, what, name)
            for verb in ("get", "patch")
            for what, name in (
                ("mutatingwebhookconfigurations", f"{NAMESPACE}-railhead-operator"),
                ("secrets", "railhead-operator-ca"),
                ("leases", "railhead-operator"),
            )
        } | {
            ("railhead-operator", verb, what, "")
            for verb in ("list", "watch")
            for what in ("railprofiles", "namespaces", "nodes")
        } | {
            ("railhead-operator", "patch", "railprofiles/status", ""),
            # Argo CD applies no Leases, so the operator may have to create its own.
            ("railhead-operator", "create", "leases", ""),
        } | REPORTS | {
            ("railhead-operator", "list", "pods", ""),
            ("railhead-operator", "watch", "pods", ""),
            ("railhead-operator", "create", "events", ""),
        }
        agent = {
            ("railhead-device-plugin", verb, what, "")
            for verb, what in (
                ("get", "nodes"),
                ("patch", "nodes"),
                ("patch", "nodes/status"),
                ("create", "events"),
                ("patch", "events"),
                ("get", "pods"),
                ("create", "nodefeatures"),
                ("patch", "nodefeatures"),
            )
        }
        forget = {
            ("railhead-forget-nodes", verb, what, "")
            for verb, what in (("list", "nodes"), ("patch", "nodes"), ("patch", "nodes/status"))
        }
        silent, telling = rights(render("devicePlugin: {nodeFacts: false}")), rights(render())
        self.assertEqual(silent, operator | forget)
        self.assertEqual(telling, operator | agent | forget)

    def test_an_agent_may_get_pods_where_jobs_get_secrets(self):
        def of(values):
            objects = render(values)
            rules = objects["ClusterRole", f"{NAMESPACE}-railhead-device-plugin"]["rules"]
            agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
            gets = [rule["verbs"] for rule in rules if "pods" in rule["resources"]]
            secrets = [item["secret"] for item in agent["volumes"] if "secret" in item]
            arguments = [a for a in agent["containers"][0]["args"] if "job-key" in a]
            self.assertNotIn("Secret", {kind for kind, name in objects if "job-key" in name})
            return gets, secrets, arguments

        mine = "devicePlugin: {jobSecrets: {existingSecret: mine%s}}\nopenshift: {enabled: true}"
        gets, secrets, arguments = of(mine % "")
        self.assertEqual(gets, [["get"]])
        self.assertEqual(secrets, [{
            "secretName": "mine", "optional": True, "defaultMode": 0o400,
            "items": [{"key": "key", "path": "key"}]}])
        self.assertEqual(arguments, ["--job-key-file=/etc/railhead-job-key/key"])
        # Without a cluster to look up the existing key, each rendering would create another one.
        for off in ("", mine % ", enabled: false"):
            self.assertEqual(of(off), ([], [], []))
        objects = render(mine % "")
        constraints = objects["SecurityContextConstraints",
                              f"{NAMESPACE}-railhead-device-plugin"]
        agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
        self.assertEqual(scc.denied(constraints, agent), [])
        self.assertIn("secret", constraints["volumes"])

    def test_the_security_context_constraints_allow_host_paths_and_nothing_else(self):
        constraints = [
            item
            for (kind, _), item in render(EVERYTHING).items()
            if kind == "SecurityContextConstraints"
        ]
        self.assertEqual(len(constraints), 1)
        rule = constraints[0]
        allowed = {name for name, value in rule.items() if name.startswith("allow") and value}
        self.assertEqual(allowed, {"allowHostDirVolumePlugin"})
        self.assertEqual(rule["volumes"], ["configMap", "hostPath", "projected"])
        self.assertEqual(rule["requiredDropCapabilities"], ["ALL"])
        self.assertEqual(
            rule["users"], [f"system:serviceaccount:{NAMESPACE}:railhead-device-plugin"]
        )
        self.assertNotIn("groups", rule)

    def test_openshift_admits_every_pod_of_the_chart(self):
        for more in ("", "devicePlugin: {nodeFacts: false, cdi: true}"):
            objects = render(f"openshift: {{enabled: true}}\n{more}")
            ours = next(
                item
                for (kind, _), item in objects.items()
                if kind == "SecurityContextConstraints"
            )
            specs = {
                name: item["spec"]["template"]["spec"]
                for (kind, name), item in objects.items()
                if kind in ("DaemonSet", "Deployment", "Job")
            }
            agent = specs.pop("railhead-device-plugin")
            self.assertEqual(scc.denied(ours, agent), [])
            self.assertEqual(scc.denied(scc.PRIVILEGED, agent), [])
            # It needs its own SecurityContextConstraints.
            for common in (scc.RESTRICTED_V2, scc.ANYUID):
                self.assertTrue(
                    any("hostPath" in why for why in scc.denied(common, agent)), common
                )
            self.assertTrue(specs)
            for name, spec in specs.items():
                self.assertEqual(scc.denied(scc.RESTRICTED_V2, spec), [], name)

    def test_pods_that_openshift_does_not_admit_are_found(self):
        objects = render("openshift: {enabled: true}")
        ours = next(
            item for (kind, _), item in objects.items() if kind == "SecurityContextConstraints"
        )
        agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["spec"]
        for change, why in (
            ({"hostNetwork": True}, "spec.hostNetwork"),
            ({"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}, "seLinuxOptions.type"),
            ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, "seccompProfile"),
            ({"volumes": [{"name": "x", "emptyDir": {}}]}, "emptyDir volumes"),
        ):
            reasons = scc.denied(ours, agent | change)
            self.assertTrue(any(why in reason for reason in reasons), (why, reasons))
        for change, why in (
            ({"privileged": True}, "privileged"),
            ({"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation"),
            ({"runAsUser": 7}, "runAsUser"),
            ({"readOnlyRootFilesystem": False}, "readOnlyRootFilesystem"),
            ({"capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}}, "SYS_ADMIN"),
            ({"capabilities": {"drop": ["MKNOD"]}}, "ALL is required"),
        ):
            container = agent["containers"][0]
            changed = container | {"securityContext": container["securityContext"] | change}
            reasons = scc.denied(ours, agent | {"containers": [changed]})
            self.assertTrue(any(why in reason for reason in reasons), (why, reasons))


class Webhook(unittest.TestCase):
    """The MutatingWebhookConfiguration."""

    def test_it_never_stands_in_the_way(self):
        webhooks = render()["MutatingWebhookConfiguration", f"{NAMESPACE}-railhead-operator"][
            "webhooks"
        ]
        self.assertEqual(
            [hook["name"] for hook in webhooks], ["pods.railhead.io", "jobs.railhead.io"]
        )
        for hook in webhooks:
            self.assertEqual(hook["failurePolicy"], "Ignore")
            self.assertEqual(hook["sideEffects"], "None")
            pods = hook["name"] == "pods.railhead.io"
            self.assertEqual(
                hook["rules"][0]["operations"], ["CREATE"] if pods else ["CREATE", "UPDATE"]
            )
            self.assertLessEqual(
                {"kube-system", NAMESPACE},
                set(hook["namespaceSelector"]["matchExpressions"][0]["values"]),
            )
            self.assertEqual(
                [condition["name"] for condition in hook["matchConditions"]],
                ["asks-for-rdma"] if pods else ["asks-for-rdma", "size-changes"],
            )
            # The operator writes the bundle; a value here would delete it at every upgrade.
            self.assertNotIn("caBundle", hook["clientConfig"])

    def test_the_operator_is_told_its_own_names(self):
        objects = render()
        container = objects["Deployment", "railhead-operator"]["spec"]["template"]["spec"][
            "containers"
        ][0]
        flags = dict(flag.split("=", 1) for flag in container["args"])
        self.assertEqual(
            set(flags),
            {"--config", "--log-level", "--service", "--ca-secret", "--lease", "--webhook-configuration"},
        )
        self.assertIn(("Service", flags["--service"]), objects)
        self.assertIn(("Secret", flags["--ca-secret"]), objects)
        self.assertIn(("Lease", flags["--lease"]), objects)
        self.assertIn(("MutatingWebhookConfiguration", flags["--webhook-configuration"]), objects)
        config = objects["ConfigMap", "railhead-operator"]["data"]
        self.assertEqual([f"/etc/railhead/{name}" for name in config], [flags["--config"]])
        self.assertEqual(container["volumeMounts"][0]["mountPath"], "/etc/railhead")

    def test_its_service_is_there_and_finds_the_operator(self):
        objects = render()
        for hook in objects["MutatingWebhookConfiguration", f"{NAMESPACE}-railhead-operator"][
            "webhooks"
        ]:
            target = hook["clientConfig"]["service"]
            service = objects["Service", target["name"]]
            self.assertEqual(service["metadata"]["namespace"], target["namespace"])
            self.assertEqual(service["spec"]["ports"][0]["port"], target["port"])
            pod = objects["Deployment", "railhead-operator"]["spec"]["template"]
            self.assertLessEqual(
                service["spec"]["selector"].items(), pod["metadata"]["labels"].items()
            )
            ports = {
                port["name"]: port["containerPort"]
                for port in pod["spec"]["containers"][0]["ports"]
            }
            self.assertEqual(ports[service["spec"]["ports"][0]["targetPort"]], 9443)
            agent = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]
            self.assertFalse(
                service["spec"]["selector"].items() <= agent["metadata"]["labels"].items()
            )


class Profiles(unittest.TestCase):
    """The kind RailProfile, the shipped profiles, and the policy that reports pods without one."""

    SHIPPED = sorted(path.stem for path in (CHART / "profiles").iterdir())

    def test_the_schema_names_what_the_chart_ships(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        names = schema["properties"]["profiles"]["properties"]["shipped"]["items"]["enum"]
        self.assertEqual(sorted(names), self.SHIPPED)

    def test_shipped_profiles_are_installed_by_name_and_only_then(self):
        self.assertNotIn("RailProfile", {kind for kind, _ in render()})
        values = f"profiles: {{shipped: [{', '.join(self.SHIPPED)}]}}"
        objects = render(values, "--api-versions", "railhead.io/v1alpha1/RailProfile")
        for name in self.SHIPPED:
            profile = yaml.safe_load((CHART / "profiles" / f"{name}.yaml").read_text())
            rendered = objects["RailProfile", name]
            self.assertEqual(rendered["spec"], profile["spec"])
            self.assertEqual(rendered["metadata"]["labels"]["app.kubernetes.io/name"], "railhead")

    def test_without_the_kind_they_come_after_it(self):
        objects = render("profiles: {shipped: [tcp-only]}")
        marks = objects["RailProfile", "tcp-only"]["metadata"]["annotations"]
        self.assertEqual(marks["helm.sh/hook"], "post-install,post-upgrade")
        known = render("profiles: {shipped: [tcp-only]}", "--api-versions", "railhead.io/v1alpha1/RailProfile")
        self.assertNotIn("annotations", known["RailProfile", "tcp-only"]["metadata"])

    def test_without_the_kind_and_who_brings_it_the_refusal_says_what_to_do(self):
        done = helm("template", "railhead", CHART, "--set", "profiles.shipped={tcp-only}",
                    "--set", "profiles.crd=false")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("first install the release that does", done.stderr)

    def test_what_people_wrote_stays_after_an_uninstall_unless_it_is_not_to(self):
        for values, policy in (("", "keep"), ("crds: {keep: false}", None)):
            kinds = {
                name: item["metadata"].get("annotations", {})
                for (kind, name), item in render(values).items()
                if kind == "CustomResourceDefinition"
            }
            self.assertEqual(len(kinds), 3)
            for name, annotations in kinds.items():
                self.assertEqual(annotations.get("helm.sh/resource-policy"), policy, name)

    def test_another_release_may_bring_the_kind(self):
        kind = ("CustomResourceDefinition", "railprofiles.railhead.io")
        self.assertIn(kind, render())
        self.assertNotIn(kind, render("profiles: {crd: false}"))

    def test_missed_pods_are_those_that_the_webhook_would_have_seen(self):
        name = f"{NAMESPACE}-railhead-operator"
        for action, failure in (("Warn", "Ignore"), ("Deny", "Fail")):
            objects = render(
                f"operator: {{webhook: {{missedPods: {action}, excludedNamespaces: [monitoring]}}}}"
            )
            policy = objects["ValidatingAdmissionPolicy", f"{name}-missed"]["spec"]
            pods = objects["MutatingWebhookConfiguration", name]["webhooks"][0]
            self.assertEqual(
                policy["matchConstraints"]["namespaceSelector"], pods["namespaceSelector"]
            )
            self.assertIn("monitoring", str(pods["namespaceSelector"]))
            # Also the launchers of MPIJobs, which request no RDMA and may miss the webhook.
            condition, = copy.deepcopy(policy["matchConditions"])
            condition["expression"] += (
                " || object.metadata.?annotations.orValue({})"
                "[?'railhead.io/launcher'].orValue('') != ''"
            )
            self.assertEqual([condition], pods["matchConditions"])
            # A policy that only warns must not reject pods if it fails.
            self.assertEqual(policy["failurePolicy"], failure)
            binding = objects["ValidatingAdmissionPolicyBinding", f"{name}-missed"]["spec"]
            self.assertEqual(binding["policyName"], f"{name}-missed")
            self.assertEqual(binding["validationActions"], [action, "Audit"])
        silent = render("operator: {webhook: {missedPods: Ignore}}")
        self.assertNotIn(("ValidatingAdmissionPolicy", f"{name}-missed"), silent)
        self.assertNotIn(("ValidatingAdmissionPolicyBinding", f"{name}-missed"), silent)


class Metrics(unittest.TestCase):
    """How Prometheus finds the node agents."""

    def test_annotations_port_and_flag_agree(self):
        for values, port in (("", 9401), (EVERYTHING, 9999)):
            pod = render(values)["DaemonSet", "railhead-device-plugin"]["spec"]["template"]
            container = pod["spec"]["containers"][0]
            self.assertEqual(
                pod["metadata"]["annotations"],
                {
                    "prometheus.io/scrape": "true",
                    "prometheus.io/port": str(port),
                    "prometheus.io/path": "/metrics",
                },
            )
            ports = {item["name"]: item["containerPort"] for item in container["ports"]}
            self.assertEqual(ports, {"health": 8080, "metrics": port})
            self.assertIn(f"--metrics-address=:{port}", container["args"])

    def test_the_pod_monitor_finds_the_agents_and_leaves_their_pod_out(self):
        objects = render(EVERYTHING)
        monitor = objects["PodMonitor", "railhead-device-plugin"]
        self.assertEqual(monitor["metadata"]["labels"]["release"], "prometheus")
        pod = objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]
        self.assertLessEqual(
            monitor["spec"]["selector"]["matchLabels"].items(), pod["metadata"]["labels"].items()
        )
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        self.assertEqual((endpoint["port"], endpoint["interval"]), ("metrics", "5s"))
        self.assertIs(endpoint["honorLabels"], True)
        rule, node = endpoint["relabelings"]
        self.assertEqual(node["targetLabel"], "node")
        self.assertEqual(rule["action"], "labeldrop")
        for label in ("namespace", "pod"):
            self.assertRegex(label, f"^({rule['regex']})$")


    def test_every_replica_of_the_operator_is_scraped(self):
        objects = render(EVERYTHING)
        monitor = objects["PodMonitor", "railhead-operator"]
        pod = objects["Deployment", "railhead-operator"]["spec"]["template"]
        self.assertLessEqual(
            monitor["spec"]["selector"]["matchLabels"].items(), pod["metadata"]["labels"].items()
        )
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        self.assertEqual((endpoint["port"], endpoint["interval"]), ("http", "5s"))
        ports = {item["name"]: item["containerPort"] for item in pod["spec"]["containers"][0]["ports"]}
        notes = pod["metadata"]["annotations"]
        self.assertEqual(notes["prometheus.io/port"], str(ports["http"]))
        self.assertEqual((notes["prometheus.io/scrape"], notes["prometheus.io/path"]), ("true", "/metrics"))


class Rules(unittest.TestCase):
    """Alerts as a PrometheusRule."""

    FILE = yaml.safe_load((CHART / "rules" / "railhead.yaml").read_text())["groups"]

    def test_the_rule_is_the_file(self):
        rule = render("metrics: {rules: {enabled: true}}")["PrometheusRule", "railhead"]
        self.assertEqual(rule["spec"]["groups"], self.FILE)
        self.assertNotIn("PrometheusRule", {kind for kind, _ in render()})

    def test_values_change_it(self):
        rule = render(EVERYTHING)["PrometheusRule", "railhead"]
        self.assertEqual(rule["metadata"]["labels"]["release"], "prometheus")
        rules = [one for group in rule["spec"]["groups"] for one in group["rules"]]
        alerts = {one["alert"]: one["annotations"]["runbook_url"] for one in rules if "alert" in one}
        ours = {one["alert"] for group in self.FILE for one in group["rules"] if "alert" in one}
        self.assertEqual(set(alerts), ours - {"RailheadStraggler"})
        for name, url in alerts.items():
            self.assertEqual(url, f"https://runbooks.example/railhead/{name}.md")

    def test_alerts_that_ask_whether_a_target_is_up_know_its_job(self):
        """Prometheus Operator names a job after the PodMonitor, whose name begins with the release's."""
        values = "metrics: {podMonitor: {enabled: true}, rules: {enabled: true}}\n"
        for release, more in (("railhead", ""), ("railhead", "fullnameOverride: rails"), ("x" * 38, ""),
                              ("railhead-of-a-release-with-a-very-long-name", "")):
            with self.subTest(release, more=more):
                done = helm("template", release, CHART, "--namespace", NAMESPACE, values=values + more)
                objects = [item for item in yaml.load_all(done.stdout, yaml.CSafeLoader) if item]
                rule, = (item for item in objects if item["kind"] == "PrometheusRule")
                known = set(re.findall(r'up\{job=~"([^"]+)"', json.dumps(rule).replace('\\"', '"')))
                self.assertEqual(len(known), 3)
                for job, ours in (("runtime", "railhead"), ("device-plugin", "railhead-node-agent"),
                                  ("operator", "railhead-operator")):
                    monitor, = (item["metadata"]["name"] for item in objects
                                if item["kind"] == "PodMonitor" and item["metadata"]["name"].endswith(job))
                    matching = {one for one in known if re.fullmatch(one, f"{NAMESPACE}/{monitor}")}
                    self.assertEqual(len(matching), 1, monitor)
                    # As the README names it, for those who have no Prometheus Operator.
                    self.assertEqual({one for one in known if re.fullmatch(one, ours)}, matching)

    def test_an_alert_that_is_not_there_cannot_be_left_out(self):
        done = helm("template", "railhead", CHART, "--set", "metrics.rules.enabled=true",
                    "--set", "metrics.rules.disabled={RailheadRaildown}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("unknown alert RailheadRaildown; the alerts are: RailheadRailDown", done.stderr)


class Dashboards(unittest.TestCase):
    """The ConfigMap; tests/monitoring checks the contents of the dashboards."""

    def test_all_of_them_are_in_the_config_map(self):
        data = render()["ConfigMap", "railhead-dashboards"]
        self.assertEqual(data["metadata"]["labels"]["grafana_dashboard"], "1")
        files = {path.name: json.loads(path.read_text()) for path in (CHART / "dashboards").iterdir()}
        self.assertEqual({name: json.loads(text) for name, text in data["data"].items()}, files)
        self.assertEqual(set(files), {"cluster.json", "railhead.json", "node.json", "operator.json"})


class NetworkExamples(unittest.TestCase):
    """manifests/examples/networks: the files use matching names, which match the chart's values."""

    FOLDER = ROOT / "manifests" / "examples" / "networks"
    # Examples that use another example's values.
    VALUES = {"rdma-exclusive": "sriov", "infiniband": "sriov"}

    def offered(self, name):
        """Returns the agent's resources by name, as the chart configures them."""
        values = (self.FOLDER / f"{self.VALUES.get(name, name)}.values.yaml").read_text()
        text = render(values)["ConfigMap", "railhead-device-plugin"]["data"]["agent.yaml"]
        return {resource["name"]: resource for resource in yaml.safe_load(text)["resources"]}

    def test_values_are_the_charts(self):
        files = sorted(self.FOLDER.glob("*.values.yaml"))
        self.assertEqual(len(files), 3)
        for file in files:
            with self.subTest(file.name):
                self.assertTrue(self.offered(file.name.removesuffix(".values.yaml")))

    def test_pods_ask_for_what_is_offered_and_attached(self):
        for file in sorted(self.FOLDER.glob("*.yaml")):
            if file.name.endswith(".values.yaml"):
                continue
            with self.subTest(file.name):
                offered = self.offered(file.name.removesuffix(".yaml"))
                *attachments, pod = yaml.safe_load_all(file.read_text())
                wanted = pod["spec"]["containers"][0]["resources"]["limits"]
                for resource in wanted:
                    rail = re.fullmatch(r"(.*)-\d+", resource)
                    found = offered.get(resource) or offered[rail.group(1)]
                    self.assertEqual(resource == found["name"], not found.get("perRail", False))
                names = pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].split(", ")
                self.assertEqual(set(names), {item["metadata"]["name"] for item in attachments})
                self.assertEqual(len(names), sum(wanted.values()))
                for item in attachments:
                    config = json.loads(item["spec"]["config"])
                    self.assertIn("type", config["plugins"][0] if "plugins" in config else config)
                    resource = item["metadata"].get("annotations", {}).get(
                        "k8s.v1.cni.cncf.io/resourceName")
                    if resource is not None:  # Multus passes on the ids of its devices
                        self.assertIn(resource, wanted)
                        self.assertEqual(offered[resource]["deviceIds"], "pciAddress")


class HelmTest(unittest.TestCase):
    """The objects of `helm test`; allreduce_test runs its scripts."""

    def test_all_of_it_is_there_for_the_test_only(self):
        hooks = {
            name: item["metadata"]["annotations"]
            for name, item in render().items()
            if item["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"
        }
        ours = {name for name in render() if "railhead-test" in name[1]}
        self.assertEqual(set(hooks), ours)
        self.assertEqual({kind for kind, _ in ours}, {"ConfigMap", "Service", "StatefulSet", "Pod"})
        for (kind, _), notes in hooks.items():
            # Only the pod that checks the result stays, with its log.
            self.assertEqual("hook-succeeded" in notes["helm.sh/hook-delete-policy"], kind != "Pod")
        order = {kind: int(notes["helm.sh/hook-weight"]) for (kind, _), notes in hooks.items()}
        self.assertLess(order["ConfigMap"], order["StatefulSet"])
        self.assertLess(order["StatefulSet"], order["Pod"])

    def test_it_tests_any_resource_that_agents_may_offer(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        offered = schema["$defs"]["resource"]["properties"]["name"]
        tested = schema["properties"]["test"]["properties"]["resource"]
        self.assertEqual({**tested, "description": ""}, {**offered, "description": ""})
        rank = render("test: {resource: example.com/nic}")["StatefulSet", "railhead-test-rank"]["spec"]["template"]["spec"]
        self.assertEqual(rank["containers"][0]["resources"]["limits"]["example.com/nic"], 1)

    def test_its_pods_run_on_nodes_of_their_kind(self):
        for values, selector in (
            ("", {"kubernetes.io/os": "linux"}),
            ("test: {nodeSelector: {kubernetes.io/arch: arm64}}",
             {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}),
        ):
            objects = render(values)
            rank = objects["StatefulSet", "railhead-test-rank"]["spec"]["template"]["spec"]
            self.assertEqual(rank["nodeSelector"], selector)
            self.assertEqual(objects["Pod", "railhead-test"]["spec"]["nodeSelector"], selector)

    def test_names_and_ports_agree(self):
        objects = render("devicePlugin: {metricsPort: 9999}\ntest: {hcas: 8, resource: rdma/fast}")
        ranks = objects["StatefulSet", "railhead-test-rank"]["spec"]
        rank, check = ranks["template"]["spec"]["containers"][0], objects["Pod", "railhead-test"]["spec"]["containers"][0]
        env = {name: {item["name"]: item.get("value") for item in one["env"]} for name, one in (("rank", rank), ("check", check))}
        names = [f"railhead-test-rank-{n}.{ranks['serviceName']}" for n in (0, 1)]
        self.assertEqual(env["check"]["RANK_ADDRESSES"].split(), names)
        self.assertEqual(env["rank"]["MASTER_ADDR"], names[0])
        self.assertEqual(env["rank"]["RESULT_PORT"], env["check"]["RESULT_PORT"])
        self.assertEqual(env["check"]["AGENT_PORT"], "9999")
        self.assertEqual((env["check"]["HCAS"], env["check"]["RESOURCE"]), ("8", "rdma/fast"))
        self.assertEqual(rank["resources"]["limits"]["rdma/fast"], 8)
        for service, labels in (
            ("railhead-test-rank", ranks["template"]["metadata"]["labels"]),
            (env["check"]["AGENT_ADDRESSES"],
             objects["DaemonSet", "railhead-device-plugin"]["spec"]["template"]["metadata"]["labels"]),
        ):
            spec = objects["Service", service]["spec"]
            self.assertEqual(spec["clusterIP"], "None")
            self.assertLessEqual(spec["selector"].items(), labels.items())
        # Every variable that a script reads is set, unless it has a default there.
        for name, script in (("rank", "rank.sh"), ("check", "check.sh")):
            text = (CHART / "test" / script).read_text()
            own = set(re.findall(r"\b([A-Z_]+)=", text)) | {"SECONDS", "ENV", "SIG"}
            self.assertLessEqual(set(re.findall(r"\$\{?([A-Z][A-Z_]+)\b(?!:-)", text)) - own, set(env[name]))


class Notes(unittest.TestCase):
    """The text that helm prints after an installation."""

    def notes(self, values=""):
        done = helm("install", "railhead", CHART, "--namespace", NAMESPACE, "--dry-run=client", values=values)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout[done.stdout.index("NOTES:"):]

    def test_each_part_that_is_enabled_has_its_next_command(self):
        commands = {
            "operator: {verdicts: {enabled: VALUE}}": "kubectl get railreports",
            "operator: {gangs: {enabled: VALUE}}": "reason=GangWaiting",
            "operator: {topology: {enabled: VALUE}}": "kubectl describe fabrictopology cluster",
            "devicePlugin: {jobSecrets: {existingSecret: mine, enabled: VALUE}}":
                "ls /run/railhead/secret",
            "devicePlugin: {memlock: VALUE}": "rollout status daemonset/railhead-memlock",
            "dashboards: {enabled: VALUE}": "get configmap railhead-dashboards",
            "metrics: {podMonitor: {enabled: VALUE}}": "get podmonitors",
            "metrics: {rules: {enabled: VALUE}}": "get prometheusrule railhead",
        }
        for values, command in commands.items():
            with self.subTest(values):
                self.assertIn(command, self.notes(values.replace("VALUE", "true")))
                self.assertNotIn(command, self.notes(values.replace("VALUE", "false")))
        self.assertIn("helm test railhead --namespace railhead-system --logs", self.notes())

    def test_what_is_not_enabled_can_be_by_the_command(self):
        plain = self.notes()
        self.assertIn("--set metrics.podMonitor.enabled=true", plain)
        self.assertIn("--set metrics.rules.enabled=true", plain)
        self.assertIn("devicePlugin.jobSecrets.existingSecret", plain)
        both = "metrics: {podMonitor: {enabled: true}, rules: {enabled: true}}\n"
        self.assertIn("What is not enabled", self.notes(both))
        all_three = both + "devicePlugin: {jobSecrets: {existingSecret: mine}}"
        self.assertNotIn("What is not enabled", self.notes(all_three))


class Example(unittest.TestCase):
    """manifests/examples/allreduce.yaml matches the chart."""

    def test_it_uses_what_the_chart_installs(self):
        text = (ROOT / "manifests" / "examples" / "allreduce.yaml").read_text()
        service, job = yaml.safe_load_all(text)
        pod = job["spec"]["template"]
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual(service["metadata"]["name"], pod["spec"]["subdomain"])
        self.assertLessEqual(service["spec"]["selector"].items(), pod["metadata"]["labels"].items())
        self.assertEqual(job["spec"]["completions"], job["spec"]["parallelism"])
        version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
        self.assertEqual(
            pod["spec"]["containers"][0]["image"], f"docker.io/railhead/runtime:{version}"
        )

    def test_one_version_everywhere(self):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        project = re.search(
            r"project\(railhead VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()
        )
        self.assertEqual({chart["version"], chart["appVersion"]}, {project.group(1)})


if __name__ == "__main__":
    unittest.main()
