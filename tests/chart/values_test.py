# SPDX-License-Identifier: Apache-2.0
"""values.yaml and values.schema.json: the values that the chart takes and rejects, and what they change."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import yaml

from helm import CHART, EVERYTHING, MEMLOCK, NAMESPACE, RELEASE, ROOT, helm, render, rights

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
                    named = name in ("namespace", "name", "app.kubernetes.io/instance")
                    if named and not isinstance(one, (dict, list)):
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


if __name__ == "__main__":
    unittest.main()
