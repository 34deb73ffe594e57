import gzip
import json
from pathlib import Path

import pytest

from podium.api.errors import InputError
from podium.api.input import files
from podium.api.input.codec import load_files, load_text, read_input


def manifest(name: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})


def write(folder: Path, name: str, content: str | None = None) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(manifest(file.stem) if content is None else content)
    return file


def read(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of the objects of a folder, and what is said of what is left out, without the folder's name."""
    found = read_input([folder])
    names = [one.raw["metadata"]["name"] for one in found.documents]
    return names, [str(one).replace(f"{folder}/", "") for one in found.left_out]


def error_of(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_files([folder])
    return str(caught.value).replace(f"{folder}", "DIR")


def test_the_folders_in_a_directory_are_read_after_its_files(tmp_path: Path) -> None:
    for name in ("c.yaml", "b/d.json", "b/a/e.yml", "a/z.yaml"):
        write(tmp_path, name)

    assert read(tmp_path) == (["c", "z", "d", "e"], [])


def test_hidden_files_and_folders_are_left_out_without_a_word(tmp_path: Path) -> None:
    for name in ("a.yaml", ".b.yaml", ".git/c.yaml", "..2026/d.yaml"):
        write(tmp_path, name)

    assert read(tmp_path) == (["a"], [])


def test_a_link_within_the_directory_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "..data/a.yaml")
    (tmp_path / "a.yaml").symlink_to(tmp_path / "..data" / "a.yaml")

    assert read(tmp_path) == (["a"], [])


@pytest.mark.parametrize("target", ["outside.yaml", "nothing.yaml", "directory", "in/link.yaml"])
def test_a_link_out_of_the_directory_is_left_out_and_never_opened(tmp_path: Path, target: str) -> None:
    inside = tmp_path / "in"
    write(inside, "a.yaml")
    (tmp_path / "directory").mkdir()
    write(tmp_path, "outside.yaml", "secret: [")
    (inside / "link.yaml").symlink_to(tmp_path / target)

    names, (word,) = read(inside)

    assert names == ["a"]
    assert word == "link.yaml: is a link to something else than a file in the directory, and is left out"


def test_a_linked_folder_is_not_entered(tmp_path: Path) -> None:
    write(tmp_path, "outside/b.yaml")
    write(tmp_path, "in/a.yaml")
    (tmp_path / "in" / "folder").symlink_to(tmp_path / "outside")
    (tmp_path / "in" / "itself").symlink_to(tmp_path / "in")

    assert read(tmp_path / "in")[0] == ["a"]


def test_the_content_of_what_a_link_leads_to_stands_in_no_error(tmp_path: Path) -> None:
    write(tmp_path, "outside.yaml", "secret: [")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.yaml").symlink_to(tmp_path / "outside.yaml")

    assert error_of(tmp_path / "in") == (
        "DIR: nothing in the directory can be read: DIR/link.yaml: is a link to something else than a file in the "
        "directory, and is left out"
    )


def test_a_directory_that_is_itself_a_link_is_read(tmp_path: Path) -> None:
    write(tmp_path, "real/a.yaml")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert read(tmp_path / "link")[0] == ["a"]


def test_a_helm_chart_is_left_out_with_what_to_do_instead(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml")
    write(tmp_path, "chart/Chart.yaml", "name: web")
    write(tmp_path, "chart/values.yaml", "replicas: 1")
    write(tmp_path, "chart/templates/web.yaml", "{{ if }}")

    command = "`helm template chart > objects.yaml`"
    assert read(tmp_path) == (["a"], [f"chart: is a Helm chart; run {command}, and give the file that it makes"])
    assert error_of(tmp_path / "chart").startswith("DIR: nothing in the directory can be read: DIR: is a Helm chart")


def test_the_files_that_a_kustomization_only_gathers_are_read(tmp_path: Path) -> None:
    kustomization = {"resources": ["a.yaml", "./b.yaml"], "secretGenerator": [{"name": "secret"}]}
    write(tmp_path, "kustomization.yaml", json.dumps(kustomization))
    write(tmp_path, "a.yaml")
    write(tmp_path, "b.yaml")

    names, (word,) = read(tmp_path)

    assert names == ["a", "b"]
    assert word.startswith("kustomization.yaml: is left out, and the files beside it are read; else run `kubectl kust")


@pytest.mark.parametrize(
    "kustomization",
    [
        '{"resources": ["a.yaml"], "namePrefix": "x-"}',
        '{"resources": ["../base"]}',
        '{"resources": ["none.yaml"]}',
        '{"patches": [{"path": "a.yaml"}]}',
        "[]",
        "broken: [",
        "\x00",
    ],
)
def test_a_folder_that_kustomize_changes_is_left_out_with_what_to_do_instead(
    tmp_path: Path, kustomization: str
) -> None:
    write(tmp_path, "b.yaml")
    write(tmp_path, "overlay/kustomization.yaml", kustomization)
    write(tmp_path, "overlay/a.yaml")

    names, (word,) = read(tmp_path)

    assert names == ["b"]
    assert word.startswith("overlay: is changed by its kustomization.yaml; run `kubectl kustomize ")


TEMPLATE = 'apiVersion: v1\nkind: Pod\nmetadata: {{ include "web.metadata" . }}\n'


@pytest.mark.parametrize(
    "text",
    [
        TEMPLATE,
        "{{- if .Values.enabled }}\napiVersion: v1\n{{- end }}",
        '{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {priority: "{{ .Values.priority }}"}}',
    ],
)
def test_a_template_of_a_chart_that_cannot_be_read_gets_the_advice_to_run_helm(text: str) -> None:
    with pytest.raises(InputError, match="run `helm template CHART > objects"):
        load_text(text, "in")


def test_double_braces_of_other_languages_get_no_such_advice() -> None:
    with pytest.raises(InputError) as caught:
        load_text('{apiVersion: v1, kind: Pod, metadata: {name: "{{workflow.name}}"}}', "in")

    assert "helm" not in str(caught.value)


def test_a_packed_file_is_unpacked_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.yaml.gz").write_bytes(gzip.compress(manifest("a").encode()))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(manifest("b").encode()) + gzip.compress(b"\n"))
    (tmp_path / "c.tar.gz").write_bytes(b"")

    assert read(tmp_path) == (["a", "b"], [])
    assert len(load_files([tmp_path / "a.yaml.gz"])) == 1


@pytest.mark.parametrize(
    "content",
    [b"\x1f\x8b", b"\x1f\x8bxxxxxxxxxxxxxxxxxxxx", gzip.compress(b"x" * 1_000, mtime=0)[:-9]],
    ids=["short", "junk", "cut"],
)
def test_a_packed_file_that_is_broken_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.gz").write_bytes(content)

    with pytest.raises(InputError, match="is not a complete gzip file"):
        load_files([tmp_path / "a.gz"])


def test_a_packed_file_that_unpacks_to_far_more_than_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_ALWAYS_UNPACKED_BYTES", 1_000)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b" " * 1_000_000, mtime=0))

    with pytest.raises(InputError, match="unpacks to more than "):
        load_files([tmp_path / "a.gz"])
