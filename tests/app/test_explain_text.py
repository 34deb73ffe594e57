from podium.api.meta import Kubernetes
from podium.api.pod import PersistentVolumeClaimVolumeSource, Volume
from podium.app.console.page import Page
from podium.app.explaining.text import write_explanation
from podium.framework.settings.configuration import Configuration
from tests.builders import budget, configuration, explain, left, node, pod, scheduler_cap, tolerate


def text_of(
    *objects: Kubernetes, width: int = 100, settings: Configuration | None = None, shortened: bool = False
) -> str:
    page = Page(width, shortened=shortened)
    write_explanation(page, explain(objects, settings=settings))
    return page.text


def part(text: str, title: str) -> list[str]:
    """Return the lines of one part of the text, its heading first."""
    return next(block.splitlines() for block in text.split("\n\n") if block.startswith(title))


def test_a_pod_that_fits_gets_its_node_and_the_scores_that_differ() -> None:
    text = text_of(node("a", cpu=8), node("b", cpu=4), node("c", cpu=1), pod("p", cpu=2, memory="1Gi"))

    assert (
        text
        == """\
default/p fits: node a
  priority 0, Burstable, asks for 2 cpu, 1Gi memory

Nodes  2 of 3 can take it
  2 nodes  fits              a, b
   1 node  Insufficient cpu  c

Scores  highest total wins
                 Node
            Resources       Node
             Balanced  Resources
     node  Allocation        Fit  total
  →  a             69         85    454
     b             63         73    436
  the same on every node: ImageLocality 0, TaintToleration 300
"""
    )


def test_the_only_node_that_fits_shows_all_its_scores() -> None:
    text = text_of(node("a"), pod("p", cpu=2))

    assert part(text, "Scores")[0] == "Scores  the only node that fits"
    assert "the same on every node" not in text


def test_explain_shows_the_five_best_nodes_and_names_ties() -> None:
    text = text_of(*(node(f"n{number}") for number in range(7)), node("small", cpu=3), pod("p", cpu=2))

    lines = part(text, "Scores")
    assert lines[0] == "Scores  the best 5 of 8; 7 nodes tie: n0, n1, n2, n3, n4, n5, n6"
    assert len([line for line in lines if " n" in line[:8] and "node" not in line]) == 5
    assert sum("→" in line for line in lines) == 1


def test_a_nominated_pod_takes_its_node_though_another_scores_more() -> None:
    text = text_of(node("a"), node("b", cpu=4), pod("p", cpu=2, nominated="b"))

    assert text.startswith("default/p fits: node b\n")
    assert "  is nominated to b\n" in text
    assert part(text, "Scores")[0] == "Scores  it gets the node that it is nominated to"


def test_a_replacement_takes_the_node_that_it_was_left_to_try_though_another_scores_more() -> None:
    waiting = pod("p", cpu=2, owner="ReplicaSet/web", created=60)
    there = node("c", cpu=1, leaves=[left("q", hint="b")])

    text = text_of(node("a"), node("b", cpu=4), there, waiting)

    assert text.startswith("default/p fits: node b\n")
    fact = "replaces pod q, whose eviction left it the front of the queue and a try at b"
    assert fact in " ".join(text.split())
    assert part(text, "Scores")[0] == "Scores  it gets the node that an eviction recommended"


def test_preemption_shows_the_candidates_the_victims_and_what_they_free() -> None:
    text = text_of(
        node("a", cpu=4),
        node("b", cpu=4),
        pod("a1", on="a", cpu=3, priority=5),
        pod("b1", on="b", cpu=2, priority=1),
        pod("b2", on="b", cpu=1, priority=3),
        pod("p", cpu=3, priority=10),
    )

    assert (
        text
        == """\
default/p preempts on b: victim default/b1
  priority 10, Burstable, asks for 3 cpu

Nodes  0 of 2 can take it
  2 nodes  Insufficient cpu  a, b

Preemption  2 candidates; decided by the lowest priority of the most important victim
     node  violations  priority  victims
  →  b              0         1        1  default/b1
     a              0         5        1  default/a1

Victims  on b, the most important first
  default/b1  priority 1  Burstable  frees 2 cpu

What would have to change to run without preempting  each line is enough by itself
  a, b  cpu short by 2 (3 asked, 1 of 4 free)
"""
    )


def test_the_chosen_candidate_is_shown_however_many_are_equal() -> None:
    nodes = [node(f"n{number}", cpu=1) for number in range(20)]
    victims = [pod(f"v{number}", on=f"n{number}", cpu=1) for number in range(20)]

    lines = part(text_of(*nodes, *victims, pod("p", cpu=1, priority=1)), "Preemption")

    assert lines[0].startswith("Preemption  20 candidates; 20 are equal: n0, n1, n10")
    assert sum("→" in line for line in lines) == 1
    assert lines[-1].strip() == "and 15 more"


def test_room_taken_from_equals_is_reported() -> None:
    settings = configuration({"DefaultPreemption": {"equalPriorityPreemption": True}})
    running = [pod(f"q{number}", on="n", cpu=1, owner="ReplicaSet/q") for number in range(4)]

    text = text_of(node("n", cpu=4), *running, pod("p", cpu=1, owner="ReplicaSet/p"), settings=settings)

    assert text.startswith("default/p preempts on n: victim default/q3\n")
    assert part(text, "Preemption")[0] == (
        "Preemption  of pods of its own priority, for fairer shares; the only candidate"
    )


def test_budgets_that_cover_victims_are_named_with_what_they_allow() -> None:
    text = text_of(
        node("a", cpu=1),
        pod("v", on="a", cpu=1, labels={"app": "web"}),
        budget("web", "app=web", 0),
        pod("p", cpu=1, priority=1),
    )

    assert part(text, "Preemption")[2].split() == ["→", "a", "1", "0", "1", "default/v"]
    assert part(text, "Victims")[-1] == "  budget default/web allows 0 disruptions, and covers 1 victim"


def test_only_budgets_that_cover_possible_victims_are_listed() -> None:
    """Both a and b are candidates. The budgets of the pods on c, which no preemption removes, have no bearing."""
    running = [pod(f"{on}1", on=on, cpu=1, labels={"app": on}, priority=9 * (on == "c")) for on in "abc"]
    budgets = [budget(name, f"app={name}", 1) for name in "abcd"]

    text = text_of(*(node(name, cpu=1) for name in "abc"), *running, *budgets, pod("p", cpu=1, priority=1))

    assert [line.split()[0] for line in part(text, "Budgets")[1:]] == ["budget", "default/a", "default/b"]
    fits = text_of(node("free", cpu=1), *budgets, pod("p", cpu=1, priority=1))
    assert "Budgets" not in fits


def test_rejected_candidates_are_grouped_by_reason() -> None:
    text = text_of(
        node("a", cpu=1),
        node("b", cpu=1),
        pod("a1", on="a", cpu=1, priority=9),
        pod("b1", on="b", cpu=1, priority=9),
        pod("p", cpu=1),
    )

    assert text.startswith("default/p is unschedulable\n")
    assert part(text, "Preemption") == [
        "Preemption  no way: on no node would removing pods of lower priority be enough"
    ]
    assert part(text, "Not candidates")[1:] == ["  2 nodes  No preemption victims found for incoming pod  a, b"]


def test_explain_says_that_a_never_preempting_pod_has_no_candidates() -> None:
    text = text_of(node("a", cpu=1), pod("v", on="a", cpu=1), pod("p", cpu=1, priority=1, policy="Never"))

    assert text.startswith("default/p is unschedulable, and not eligible due to preemptionPolicy=Never\n")
    assert "Preemption" not in text
    assert text.endswith("  with preemptionPolicy PreemptLowerPriority it would preempt default/v on a\n")


def test_a_pod_whose_victims_are_still_ending_waits_for_them() -> None:
    text = text_of(
        node("a", cpu=1),
        pod("v", on="a", cpu=1, terminating=True, preempted=True),
        pod("p", cpu=1, priority=1, nominated="a"),
    )

    assert "not eligible due to a terminating pod on the nominated node" in text
    assert text.endswith("  the pods that it preempted on a would have to end\n")


def test_a_rejection_before_all_nodes_names_its_plugin() -> None:
    lost = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data"))

    text = text_of(node("a"), pod("p", spec={"volumes": (lost,)}))

    assert text.startswith("default/p is unschedulable\n")
    assert text.endswith(
        '\nBefore any node was examined  VolumeRestrictions\n  persistentvolumeclaim "data" not found\n'
    )


def test_explain_reports_that_a_cluster_has_no_nodes() -> None:
    assert text_of(pod("p")).endswith("\nNodes  there are none\n")


def test_explain_reports_that_a_gated_pod_is_not_attempted() -> None:
    text = text_of(node("a"), pod("p", gates=["example.com/quota", "example.com/check"]))

    assert "not attempted before its scheduling gates are removed: example.com/quota, example.com/check\n" in text


def test_long_names_and_long_reasons_stay_within_a_terminal() -> None:
    names = [f"ip-10-0-{number}-7.very-long-region-name.compute.internal.example.com" for number in range(12)]
    tainted = ["dedicated=gpu:NoSchedule"]
    nodes = [node(name, cpu=2, taints=tainted if number % 2 else ()) for number, name in enumerate(names)]
    victims = [pod(f"a-pod-with-a-long-name-{number}", on=name, cpu=2) for number, name in enumerate(names)]

    for width in (60, 80, 100):
        for incoming in (
            pod("p", cpu=2, priority=1, tolerations=[tolerate("")]),
            pod("p", cpu=2),
            pod("p", cpu=0, tolerations=[tolerate("")]),
        ):
            text = text_of(*nodes, *victims, incoming, width=width, shortened=True)
            assert [line for line in text.splitlines() if len(line) > width] == []


def test_columns_of_a_plugin_that_a_configuration_adds_are_shown_too() -> None:
    settings = configuration(only=["NodeResourcesFit"])
    page = Page()

    write_explanation(page, explain([node("a"), node("b", cpu=4), pod("p", cpu=1)], "default/p", settings))

    assert "Fit  total" in page.text
    assert "Toleration" not in page.text


def test_pods_that_their_policy_protects_are_named_with_what_would_happen_without_it() -> None:
    text = text_of(
        node("a", cpu=2),
        pod("kept", on="a", cpu=2, policy="NonPreemptible"),
        pod("p", cpu=1, priority=1),
    )

    assert part(text, "Preemption") == [
        "Preemption  no way: on no node would removing pods of lower priority be enough, without",
        "  default/kept: its policy forbids it",
    ]
    assert text.endswith(
        "  without the preemptionPolicy of default/kept (NonPreemptible) it would preempt default/kept on a\n"
    )


def test_the_protection_of_pods_that_would_not_help_is_no_remedy_and_stays() -> None:
    objects = [node("a", cpu=2), pod("kept", on="a", cpu=1, policy="NonPreemptible"), pod("p", cpu=8, priority=1)]

    text = text_of(*objects)

    assert "without the preemptionPolicy" not in text
    assert "may not" not in text


def test_a_preemption_that_a_cap_puts_off_says_until_when() -> None:
    text = text_of(
        node("a", cpu=1),
        pod("v", on="a", cpu=1, labels={"app": "web"}, ready=True),
        budget("web", "app=web", 1),
        scheduler_cap("2/1h", used=2),
        pod("p", cpu=1, priority=1),
        width=200,
    )

    put_off = (
        "it would disrupt a pod with a budget, and the cap of 2/1h on component scheduler (DisruptionPolicy default)"
    )
    assert text.startswith(f"default/p is unschedulable for now: {put_off} leaves 0; the next try is at ")
    assert part(text, "Preemption")[0].startswith(f"Preemption  put off: {put_off} leaves 0")
    assert "the cap on the scheduler's disruptions leaves enough" in part(text, "What would have to change")[-1]
