"""What the chart makes: objects that Kubernetes takes, and pods that may do no more than they need."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from tests.charts.rendering import CHART, EXAMPLES, LEAST, Rendered, example, render, run_helm
from tests.cluster.composition import read_composition
from tests.cluster.stack import make_values

from seamline.model.compile.problems import NAME
from seamline.version import RECORDED

pytestmark = pytest.mark.faults
KEDA = "ScaledObject"
ASSIGNED = re.compile(r"(?i)(password|secret_?key|token|fernet)[\w.-]*[\"']?\s*[:=]\s*[\"']?[\w/+]{6,}")


@cache
def rendered(name: str) -> Rendered:
    """Render an example."""
    made = render(example(name))
    assert not made.refusal, made.refusal
    return made


@pytest.mark.parametrize("name", EXAMPLES)
def test_helm_finds_nothing_wrong(name: str) -> None:
    """With each example."""
    done = run_helm("lint", "--strict", CHART, "--values", example(name))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_kubernetes_takes_every_object(name: str) -> None:
    """A field that is misspelled is an error, and not passed over; KEDA's own kind is not Kubernetes's."""
    version = kubernetes_validate.latest_version()
    checked = [each for each in rendered(name).documents if each["kind"] != KEDA]
    for each in checked:
        kubernetes_validate.validate(each, version, strict=True)
    for who, pod in rendered(name).pods():
        whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": pod["spec"]}
        if who == "executor":
            kubernetes_validate.validate(whole, version, strict=True)
    assert len(checked) > 4


def test_a_misspelled_field_is_found() -> None:
    """A check that takes everything finds nothing."""
    [broken] = [each for each in rendered("small").documents if each["kind"] == "StatefulSet"]
    broken["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_pod_may_more_than_it_needs(name: str) -> None:
    """No root, no write to the image, no capability, no token of Kubernetes's; and a bound on memory."""
    pods = dict(rendered(name).pods())
    assert pods
    for who, template in pods.items():
        pod = template["spec"]
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 50000, who
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, who
        assert pod["automountServiceAccountToken"] is False, who
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            allowed = container["securityContext"]
            assert allowed["readOnlyRootFilesystem"] and allowed["runAsNonRoot"], who
            assert not allowed["allowPrivilegeEscalation"] and not allowed["privileged"], who
            assert allowed["capabilities"] == {"drop": ["ALL"]}, who
            assert container["resources"]["requests"].keys() >= {"cpu", "memory"}, who
            assert "memory" in container["resources"]["limits"], who
            mounted = {each["mountPath"] for each in container["volumeMounts"]}
            assert mounted >= {"/tmp", "/srv/seamline"}, who
            lasting = who.split()[0] in ("Deployment", "StatefulSet")
            assert lasting == ({"livenessProbe", "startupProbe"} <= container.keys()), who


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_manifest_has_a_secret(name: str) -> None:
    """Helm keeps what it has rendered, and so do people who render in a pipeline: Secrets are named."""
    made = rendered(name)
    assert not made.of_kind("Secret")
    assert not ASSIGNED.search(made.text)
    for _, pod in made.pods():
        for variable in pod["spec"]["containers"][0]["env"]:
            if re.search("AIRFLOW_CONN|KEY|SECRET|TOKEN|PASSWORD", variable["name"]):
                assert variable["valueFrom"]["secretKeyRef"]["name"] == "kafka"


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_pipeline_has_one_supervisor(name: str) -> None:
    """One workload of one replica, whose old pod has ended before a new one begins, and one budget."""
    made = rendered(name)
    values = yaml.safe_load(example(name).read_text())
    sets, budgets = made.of_kind("StatefulSet"), made.of_kind("PodDisruptionBudget")
    commands = [each["spec"]["template"]["spec"]["containers"][0]["args"] for each in sets]
    assert commands == [["seamline", "supervise", each["name"], "--wait"] for each in values["pipelines"]]
    assert {each["spec"]["replicas"] for each in sets} == {1}
    assert {each["spec"]["updateStrategy"]["type"] for each in sets} <= {"RollingUpdate", "OnDelete"}
    assert [each["metadata"]["name"] for each in budgets] == [each["metadata"]["name"] for each in sets]
    for each, budget in zip(sets, budgets, strict=True):
        labels = each["spec"]["template"]["metadata"]["labels"]
        assert budget["spec"]["selector"] == each["spec"]["selector"]
        assert each["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert [other["metadata"]["name"] for other in sets
                if each["spec"]["selector"]["matchLabels"].items()
                <= other["spec"]["template"]["metadata"]["labels"].items()] == [each["metadata"]["name"]]  # fmt: skip
        # A driver may take 90 s to finish its epoch.
        assert each["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= 100


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_probe_looks_at_what_the_supervisor_touches(name: str) -> None:
    """The path is spelled in two places."""
    for each in rendered(name).of_kind("StatefulSet"):
        container = each["spec"]["template"]["spec"]["containers"][0]
        home = next(one["value"] for one in container["env"] if one["name"] == "SEAMLINE_HOME")
        pipeline = container["args"][2]
        for probe in ("startupProbe", "livenessProbe"):
            assert f"find {home}/streams/{pipeline}/pulse " in container[probe]["exec"]["command"][2]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_policy_closes_every_pod(name: str) -> None:
    """A pod that no policy selects may be reached by anybody, and reach anybody."""
    policies = [each["spec"] for each in rendered(name).of_kind("NetworkPolicy")]
    for who, pod in rendered(name).pods():
        labels = pod["metadata"]["labels"]
        closed = [each for each in policies
                  if each["podSelector"]["matchLabels"].items() <= labels.items()
                  and not each["podSelector"].get("matchExpressions")]  # fmt: skip
        assert {"Ingress", "Egress"} <= {kind for each in closed for kind in each["policyTypes"]}, who


@pytest.mark.parametrize("name", EXAMPLES)
def test_names_are_kubernetes_own(name: str) -> None:
    """Of services, pods and what a controller adds to a name: 52 letters of a CronJob are the least."""
    for each in rendered(name).documents:
        said = each["metadata"]["name"]
        assert re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", said) and len(said) <= 52, said


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_image_is_of_this_release(name: str) -> None:
    """A chart of one release with the image of another has settings that the image does not know."""
    images = {
        pod["spec"]["containers"][0].get("image") for who, pod in rendered(name).pods() if who != "executor"
    }
    assert images == {f"registry.example/seamline:{RECORDED}"}


def test_workers_of_a_stream_scale_with_its_lag() -> None:
    """Whoever sets the number of replicas would undo what KEDA does at each upgrade."""
    made = rendered("autoscaling")
    [scaled] = made.of_kind(KEDA)
    [workers] = [each for each in made.of_kind("Deployment") if each["metadata"]["name"].endswith("-worker")]
    assert scaled["spec"]["scaleTargetRef"]["name"] == workers["metadata"]["name"]
    assert "replicas" not in workers["spec"]
    [trigger] = scaled["spec"]["triggers"]
    assert trigger["metadata"]["query"] == 'sum(seamline_lag_records{pipeline="orders"})'
    assert trigger["metadata"]["threshold"] == "1000000"
    [service] = [each for each in made.of_kind("Service") if each["metadata"]["name"].endswith("-spark")]
    args = workers["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[-1] == f"spark://{service['metadata']['name']}:7077"
    assert len(made.of_kind("StatefulSet")) == 2 and len(made.of_kind("Deployment")) == 3


@pytest.mark.parametrize("size", [21, 40, 63])
def test_a_long_name_stays_its_own(size: int, tmp_path: Path) -> None:
    """Names that differ at their ends only."""
    names = [f"{'p' * (size - 1)}{end}" for end in "ab"]
    assert all(NAME.fullmatch(each) for each in names)
    values = tmp_path / "values.yaml"
    values.write_text(LEAST.replace("[{name: orders}]", str([{"name": each} for each in names])))
    made = render(
        values, "--set", "upkeep.enabled=true", release="a.release-of-a-name-that-is-of-46-letters-long"
    )
    assert not made.refusal
    said = [each["metadata"]["name"] for each in made.of_kind("StatefulSet", "CronJob")]
    assert len({*said}) == 4 and max(map(len, said)) <= 52


BREAKS: dict[str, tuple[str, str, str, Any]] = {
    "root": ("_helpers.tpl", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false",
             test_no_pod_may_more_than_it_needs),
    "two": ("streams.yaml", "replicas: 1", "replicas: 2", test_each_pipeline_has_one_supervisor),
    "open": ("network.yaml", "app.kubernetes.io/name: seamline\n      app.kubernetes.io/instance",
             "app.kubernetes.io/name: other\n      app.kubernetes.io/instance", test_a_policy_closes_every_pod),
    "unknown": ("streams.yaml", "terminationGracePeriodSeconds", "terminationGraceSeconds",
                test_kubernetes_takes_every_object),
    "probe": ("streams.yaml", "/pulse", "/supervisor.json", test_a_probe_looks_at_what_the_supervisor_touches),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_template_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these would be found by nobody before a pod runs."""
    file, old, new, check = BREAKS[name]
    chart = shutil.copytree(CHART, tmp_path / "seamline")
    template = chart / "templates" / file
    assert old in template.read_text()
    template.write_text(template.read_text().replace(old, new))
    made = render(example("small"), chart=chart)
    monkeypatch.setitem(globals(), "rendered", lambda _: made)
    with pytest.raises((AssertionError, KeyError, kubernetes_validate.ValidationError)):
        check("small")


def test_a_streams_pod_is_told_what_a_container_is() -> None:
    """What the composition says of the store to all that is ours, the chart says too; keys come from a Secret."""
    values = make_values("LocalExecutor")
    [worker] = [each for each in read_composition(values) if each.name == "spark-worker"]
    made = render(example("small"), "--set", "store.endpoint=http://s3:7070,store.allowHttp=true")
    [stream] = made.of_kind("StatefulSet")
    [container] = stream["spec"]["template"]["spec"]["containers"]
    told = {each["name"] for each in container["env"]}
    [keys] = container["envFrom"]
    assert keys["secretRef"]["name"] == "lake-keys"
    secret = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    assert set(worker.environment) - told == secret | {"SEAMLINE_SPARK_MASTER", "SPARK_WORKER_OPTS"}
