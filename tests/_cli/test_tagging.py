"""Tables of texts through the commands: train, predict, explain, learn, evaluate."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.service._engine import Engine
from dxml.tagging._tagger import TextTagger

from .asking import fails, run

TOPICS = {
    "Fischerei": "hering netz kutter",
    "Küche": "suppe salz löffel",
    "Straßenbau": "asphalt brücke schotter",
}


def rows(n: int, start: int = 0) -> list[dict[str, Any]]:
    """Titles and abstracts; the words of a topic decide the label."""
    found = []
    for i in range(start, start + n):
        name = sorted(TOPICS)[i % 3]
        signs = TOPICS[name].split()
        first, second, third = (signs[(i // 3 + j) % 3] for j in range(3))
        title = f"{first} {'alt neu weit'.split()[i % 3]}"
        abstract = f"{second} und {third}, {'groß klein'.split()[i % 2]}"
        found.append({"nr": f"d{i}", "title": title, "abstract": abstract, "subjects": [name]})
    return found


def write_jsonl(path: Path, records: list[dict[str, Any]]) -> Path:
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text("".join(lines), "utf-8")
    return path


COLUMNS = ["--text", "title", "--text", "abstract", "--labels", "subjects", "--id", "nr"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """docs.jsonl, new.jsonl and a trained tagger m."""
    folder = tmp_path_factory.mktemp("tagging")
    write_jsonl(folder / "docs.jsonl", rows(90))
    write_jsonl(folder / "new.jsonl", rows(9, start=90))
    done = run("train", folder / "docs.jsonl", *COLUMNS, "--model", folder / "m")
    assert done.exit_code == 0, done.output
    assert "trained a tagger on 90 texts" in done.output and "3 labels" in done.output
    assert "next: dxml explain" in done.output
    return folder


@pytest.fixture
def model(files: Path, tmp_path: Path) -> Path:
    """A copy that a test may teach."""
    return TextTagger.load(files / "m").save(tmp_path / "m")


def test_groups_are_held_out_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What only the source tells: held out by chance it is known, and of a new source it is not."""
    records = []
    for i in range(120):
        source = f"quelle{i // 10}"
        label = sorted(TOPICS)[(i // 10) % 3]
        records.append({"text": f"{source} wort{i}", "label": label, "from": source})
    table = write_jsonl(tmp_path / "docs.jsonl", records)
    ask = ["train", table, "--text", "text", "--labels", "label", "--model", tmp_path / "m"]
    said = {}
    for more in ([], ["--group", "from"]):
        done = run(*ask, *more)
        assert done.exit_code == 0, done.output
        [line] = [line for line in done.output.splitlines() if line.startswith("accuracy: P@1 ")]
        said[bool(more)] = float(line.split()[2].rstrip(","))
    assert said[False] == 100 and said[True] < 80
    assert "source" in fails(capsys, *ask, "--group", "source")
    alone = fails(capsys, "train", "bibtex", "--model", tmp_path / "b", "--group", "x")
    assert "--group goes with a table of texts" in alone


def test_every_table_makes_the_same_tagger(files: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    records = rows(90)
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "docs.parquet")
    for suffix, comma in (("csv", ","), ("tsv", "\t")):
        with (tmp_path / f"docs.{suffix}").open("w", encoding="cp1252", newline="") as file:
            writer = csv.writer(file, delimiter=comma)
            writer.writerow(["nr", "title", "abstract", "subjects"])
            for each in records:
                cells = [each["nr"], each["title"], each["abstract"], "/".join(each["subjects"])]
                writer.writerow(cells)
    wanted = TextTagger.load(files / "m").tag("suppe mit salz")
    for suffix in ("parquet", "csv", "tsv"):
        more = [] if suffix == "parquet" else ["--encoding", "cp1252", "--label-separator", "/"]
        target = tmp_path / suffix
        done = run("train", tmp_path / f"docs.{suffix}", *COLUMNS, *more, "-m", target, "--quiet")
        assert done.exit_code == 0 and done.output == "", done.output
        assert TextTagger.load(target).tag("suppe mit salz") == wanted


def test_a_table_in_utf_16_makes_the_same_tagger(files: Path, tmp_path: Path) -> None:
    docs = (files / "docs.jsonl").read_text("utf-8")
    (tmp_path / "docs.jsonl").write_text(docs, "utf-16")
    ask = ["train", tmp_path / "docs.jsonl", *COLUMNS, "-m", tmp_path / "m", "--quiet"]
    done = run(*ask, "--encoding", "utf-16")
    assert done.exit_code == 0, done.output
    wanted = TextTagger.load(files / "m").tag("suppe mit salz")
    assert TextTagger.load(tmp_path / "m").tag("suppe mit salz") == wanted


def test_predict_names_labels(files: Path, tmp_path: Path) -> None:
    ask = ["predict", files / "new.jsonl", "--model", files / "m", "--top", 2]
    lines = [line.split("\t") for line in run(*ask, "--quiet").stdout.splitlines()]
    assert lines[0] == ["point", "rank", "label", "probability"]
    best = {point: label for point, rank, label, _ in lines[1:] if rank == "1"}
    expected = [record["subjects"][0] for record in rows(9, start=90)]
    assert [best[f"d{i}"] for i in range(90, 99)] == expected  # by the id that was trained with
    said = run(*ask, "--id", "nr", "--json", "--quiet").stdout.splitlines()
    objects = [json.loads(line) for line in said]
    assert [each["point"] for each in objects] == [f"d{i}" for i in range(90, 99)]
    assert [each["labels"][0]["label"] for each in objects] == expected
    assert all(0 < each["labels"][0]["probability"] <= 1 for each in objects)
    run(*ask, "--id", "nr", "--format", "jsonl", "--output", tmp_path / "p.jsonl")
    written = (tmp_path / "p.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in written] == objects
    assert "Küche" in "".join(written)


def test_predict_needs_no_labels_and_takes_other_columns(files: Path, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "bare.jsonl", [{"body": "asphalt und schotter"}])
    done = run("predict", tmp_path / "bare.jsonl", "-m", files / "m", "--text", "body", "-q")
    point, _, name, _ = done.stdout.splitlines()[1].split("\t")
    assert (point, name) == ("0", "Straßenbau")  # no column of ids, so by number


def test_explain_says_why(files: Path) -> None:
    done = run("explain", "Hering im Netz", "--model", files / "m", "--top", 1)
    assert done.exit_code == 0, done.output
    first, second, *table = done.stdout.splitlines()
    assert first.startswith("Fischerei") and "from the head" in first and "neighbours" in first
    assert "hering +" in second and "netz +" in second
    assert "title" in table[0] and len(table) == 4 and "Fischerei" in table[1]
    ask = ["explain", "-", "--model", files / "m", "--top", "2", "--json"]
    piped = run(*ask, typed="Löffel\nmit Suppe")
    assert piped.stderr == ""
    best, _ = (json.loads(line) for line in piped.stdout.splitlines())
    assert best["name"] == "Küche" and {word for word, _ in best["words"][:2]} == {
        "löffel",
        "suppe",
    }
    assert best["from_head"] + best["from_neighbours"] == pytest.approx(1)
    assert best["neighbours"][0]["id"].startswith("d")
    unknown = run("explain", "zzyzx", "--model", files / "m", "--top", 1)
    assert unknown.stderr == "no word of the text is known: these labels are only frequent ones\n"


def test_explain_reads_a_file_of_text_and_refuses_a_table(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["--model", files / "m", "--top", "1", "--json"]
    (tmp_path / "a.txt").write_bytes("Löffel\nmit Suppe\n".encode("cp1252"))
    done = run("explain", tmp_path / "a.txt", *ask, "--encoding", "cp1252")
    assert done.stdout == run("explain", "Löffel\nmit Suppe", *ask).stdout != ""
    assert done.stderr == f"the text in the file {tmp_path / 'a.txt'}:\n"
    (tmp_path / "t.csv").write_text("title\nSuppe\n")
    said = " ".join(fails(capsys, "explain", tmp_path / "t.csv", *ask).split())
    assert "t.csv: is a file, and one text is explained at a time" in said
    assert f"dxml predict {tmp_path / 't.csv'} --model {files / 'm'}." in said
    long = "Suppe und Salz " * 100
    assert run("explain", long, *ask).exit_code == 0, "too long for the name of a file"


@pytest.mark.parametrize("text", ["Suppe", "Suppe mit Salz. Und so", "Suppe? Salz?", "S " * 999])
def test_predict_of_a_text_says_how_to_tag_one(
    files: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = fails(capsys, "predict", text, "--model", files / "m")
    assert ": there is no such file. A text itself is tagged by standard input: echo " in said
    assert f'" | dxml predict - --model {files / "m"}' in said and len(said) < 600
    assert "Check the path" in fails(capsys, "predict", "no.csv", "--model", files / "m")
    assert "Check the pattern" in fails(capsys, "predict", "no*.csv", "--model", files / "m")


def test_predict_says_when_no_word_is_known(model: Path, tmp_path: Path) -> None:
    texts = [{"nr": "u", "title": "zzyzx", "abstract": ""}, {"nr": "v", "title": "suppe"}]
    table = write_jsonl(tmp_path / "more.jsonl", texts)
    done = run("predict", table, "--model", model, "--text", "title", "--id", "nr", "--json")
    assert "no word of 1 of 2 texts is known: their labels are only frequent ones" in done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["point"] == "u" and first["nothing_known"] is True and first["labels"]
    assert second["point"] == "v" and "nothing_known" not in second


def test_learn_says_when_a_text_has_no_word(model: Path, tmp_path: Path) -> None:
    more = [
        {"nr": "u", "title": "?!", "abstract": "", "subjects": ["Küche"]},
        {"nr": "v", "title": "suppe", "abstract": "zzyzx", "subjects": ["Küche"]},
    ]
    done = run("learn", write_jsonl(tmp_path / "more.jsonl", more), "--model", model)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("learnt 2 texts, 0 labels are new: ")
    assert "warning: 1 text without a word changed nothing\n" in done.stderr


def test_learn_adds_labels_and_forgets(model: Path, tmp_path: Path) -> None:
    more = [
        {"nr": f"x{i}", "title": "hering", "abstract": "suppe", "subjects": ["Fischsuppe"]}
        for i in range(3)
    ]
    done = run("learn", write_jsonl(tmp_path / "more.jsonl", more), "--model", model)
    assert done.exit_code == 0, done.output
    assert "learnt 3 texts, 1 label is new: 93 texts known" in done.output
    assert TextTagger.load(model).tag("Suppe vom Hering", top=1)[0].name == "Fischsuppe"
    done = run("learn", "-m", model, *(f"--forget=x{i}" for i in range(3)))
    assert "forgot 3: 90 texts known" in done.output
    names = [tag.name for tag in TextTagger.load(model).tag("Suppe vom Hering")]
    assert "Fischsuppe" not in names
    done = run("learn", tmp_path / "more.jsonl", "--model", model, "--refit")
    assert "trained all parts again: 93 texts known" in done.output
    assert TextTagger.load(model).columns is not None


def test_learn_takes_labels_off_and_catches_up(model: Path) -> None:
    [own] = TextTagger.load(model).labels_of("d0")
    done = run("learn", "-m", model, "--unlabel", "d0", own, "--catch-up")
    assert f"took {own!r} off 'd0'; trained all parts on: 90 texts known" in done.output
    assert TextTagger.load(model).labels_of("d0") == []


def test_learn_takes_up_what_a_service_was_taught(model: Path) -> None:
    service = Engine(model)
    service.learn(["Suppe vom Hering"] * 2, [["Fischsuppe"]] * 2, ["x", "y"])
    service.forget("d0")
    done = run("learn", "--journal", "-m", model)
    assert "applied what the service was taught: 91 texts known" in done.output
    tagger = TextTagger.load(model)
    assert tagger.tag("Suppe vom Hering", top=1)[0].name == "Fischsuppe"
    assert tagger.applied_lessons is not None
    assert tagger.applied_lessons.number == service.applied == 2
    assert run("learn", "-m", model, "--forget", "x").exit_code == 0
    again = TextTagger.load(model)  # forgetting by hand leaves the record of the service's lessons
    assert again.applied_lessons == tagger.applied_lessons
    service.close()


def test_nothing_is_written_where_a_service_was_taught_nothing_new(
    model: Path, tmp_path: Path
) -> None:
    service = Engine(model)
    service.learn(["Suppe vom Hering"], [["Fischsuppe"]], ["x"])
    service.close()
    assert "applied what" in run("learn", "--journal", "-m", model).output
    before = {
        path.name: (path.stat().st_mtime_ns, path.read_bytes())
        for path in model.iterdir()
        if path.is_file()
    }
    said = f"the service was taught nothing new; {model} stays as it is\n"
    for quiet, output in (([], said), (["-q"], "")):
        done = run("learn", "--journal", "-m", model, *quiet)
        assert (done.exit_code, done.output) == (0, output)
    after = {
        path.name: (path.stat().st_mtime_ns, path.read_bytes())
        for path in model.iterdir()
        if path.is_file()
    }
    assert after == before
    more = write_jsonl(tmp_path / "more.jsonl", rows(1, start=90))
    done = run("learn", more, "--journal", "-m", model)
    assert "the service was taught nothing new; learnt 1 text," in done.output
    service = Engine(model)  # taught again, there is something to apply again
    service.forget("x")
    service.close()
    assert (
        "applied what the service was taught: 91 texts"
        in run("learn", "--journal", "-m", model).output
    )


def test_evaluate_scores_a_table(files: Path) -> None:
    done = run("evaluate", files / "new.jsonl", "--model", files / "m", "--json")
    scores = json.loads(done.stdout)
    assert scores["P@1"] == 100 and scores["points"] == 9 and "PSP@3" in scores
    table = run("evaluate", files / "new.jsonl", "--model", files / "m").output
    assert "nDCG" in table and "100.00" in table


def test_bad_rows_are_skipped_and_counted(files: Path, tmp_path: Path) -> None:
    good = (files / "docs.jsonl").read_text("utf-8")
    (tmp_path / "bad.jsonl").write_text(good + "{broken\n", "utf-8")
    ask = ["train", tmp_path / "bad.jsonl", *COLUMNS, "--model", tmp_path / "m"]
    done = run(*ask, "--skip-bad-rows", "--quiet")
    assert done.exit_code == 0 and "1 bad row skipped" in done.stderr
    assert "bad.jsonl line 91" in done.stderr


def test_predictions_keep_the_numbers_of_their_rows(files: Path, tmp_path: Path) -> None:
    lines = (files / "new.jsonl").read_text("utf-8").splitlines()
    bad = tmp_path / "bad.jsonl"
    bad.write_text("\n".join(["{broken", lines[0], "3", *lines[1:3], "{"]), "utf-8")
    ask = ["predict", bad, "-m", files / "m", "--top", 1, "--skip-bad-rows", "-q"]
    by_id = [json.loads(line)["point"] for line in run(*ask, "--json").stdout.splitlines()]
    assert by_id == ["d90", "d91", "d92"]
    bad.write_text(bad.read_text("utf-8").replace('"nr"', '"other"'), "utf-8")  # no ids
    by_row = [json.loads(line)["point"] for line in run(*ask, "--json").stdout.splitlines()]
    assert by_row == [1, 3, 4]
    assert [line.split("\t")[0] for line in run(*ask).stdout.splitlines()[1:]] == ["1", "3", "4"]
    run(*ask, "--format", "npz", "-o", tmp_path / "p.npz")
    scores = sp.load_npz(tmp_path / "p.npz")
    assert scores.shape == (6, 3) and np.diff(scores.indptr).tolist() == [0, 1, 0, 1, 1, 0]
    expected = [rows(1, start=90 + i)[0]["subjects"][0] for i in range(3)]
    names = TextTagger.load(files / "m").labels_
    assert [names[label] for label in scores.indices] == expected


def test_ids_of_training_texts_are_the_numbers_of_their_rows(tmp_path: Path) -> None:
    lines = [json.dumps(row) for row in rows(30)]
    (tmp_path / "bad.jsonl").write_text("\n".join(["{broken", *lines]), "utf-8")
    ask = ["train", tmp_path / "bad.jsonl", "--text", "title", "--labels", "subjects"]
    assert run(*ask, "-m", tmp_path / "m", "--skip-bad-rows", "-q").exit_code == 0
    assert TextTagger.load(tmp_path / "m").ids_ == tuple(map(str, range(1, 31)))


def test_mistakes_are_one_sentence_and_lose_nothing(
    files: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs, new, other = files / "docs.jsonl", files / "new.jsonl", tmp_path / "other"
    (tmp_path / "bad.jsonl").write_text('{"title": "a", "abstract": 3}\n')
    (tmp_path / "cp.csv").write_text("nr,title,abstract,subjects\n1,löffel,a,b\n", "cp1252")
    (tmp_path / "rowless.csv").write_text("nr,title,abstract,subjects\n")
    odd = write_jsonl(tmp_path / "odd.jsonl", [rows(1)[0] | {"subjects": ["nie gesehen"]}])
    twice = write_jsonl(tmp_path / "twice.jsonl", rows(1) * 2)
    joint = TextTagger.load(model).model.save(tmp_path / "joint")
    text, labels = ["--text", "title"], ["--labels", "subjects"]
    cases: dict[tuple[object, ...], str] = {
        ("train", docs, *text, "-m", other): "say which column has the labels, such as --labels",
        ("train", docs, *labels, "-m", other): "say which column has the texts, such as --text",
        ("train", docs, "--text", "title_", *labels, "-m", other): "did you mean 'title'?",
        ("train", tmp_path / "no.csv", *text, *labels, "-m", other): "no.csv",
        ("train", tmp_path / "cp.csv", *text, *labels, "-m", other): "such as --encoding cp1252",
        (
            "train",
            twice,
            *COLUMNS,
            "-m",
            other,
        ): "line 2: the id 'd0' in column 'nr' stands in row",
        ("train", docs, *COLUMNS, "-m", other, "--set", "min_fd=1"): "did you mean 'min_df'?",
        ("train", docs, *COLUMNS, "-m", other, "--method", "knn"): "tagged by method 'joint', got",
        ("train", docs, *COLUMNS, "-m", other, "--split", 1): "a table of texts has no splits",
        ("train", docs, *COLUMNS, "-m", tmp_path): "nothing is written over it",
        ("predict", tmp_path / "bad.jsonl", "-m", model): "Or leave such rows out with --skip-bad",
        ("predict", new, "-m", model, "--split", 1): "a table of texts has no splits",
        ("predict", new, "-m", joint, *text): "which takes features, not texts: leave --text",
        ("predict", new, "-m", model, "--text", "nothing"): "there is no column 'nothing'",
        ("evaluate", odd, "-m", model): "none of its labels is known to the model",
        ("evaluate", new, "-m", model, "--split", 1): "a table of texts has no splits",
        ("evaluate", new, "-m", joint, *labels): "which takes features, not texts",
        ("explain", "a", "-m", joint): "which takes features, not texts. A tagger is needed here",
        (
            "learn",
            tmp_path / "rowless.csv",
            "-m",
            model,
            *text,
        ): "rowless.csv: the table has no row",
        ("evaluate", tmp_path / "rowless.csv", "-m", model, *text): "the table has no rows. Check",
        (
            "predict",
            docs.with_suffix(".doc"),
            "-m",
            model,
        ): "ends in .jsonl, .json, .csv, .tsv, .xlsx",
        ("predict", new, "-m", model, "--with-parents"): "without --label-info, and knows no par",
        ("predict", new, "-m", joint, "--skip-bad-rows"): "--label-separator and --skip-bad-rows",
        ("train", docs, "-m", other, "--skip-bad-rows"): "--skip-bad-rows goes with a table",
        ("learn", "-m", model): "give a table to learn from, --forget ID, --unlabel ID LABEL, --j",
        ("learn", "-m", model, "--catch-up", "--refit"): "does all that --catch-up does. Give one",
        ("learn", "-m", model, "--unlabel", "d0", "X"): "'d0' does not carry the label 'X'",
        ("learn", "-m", model, "--journal"): "has no lessons.sqlite; no service was taught",
        ("learn", "-m", model, "--forget", "nobody"): "there is no text with the id 'nobody'",
        (
            "learn",
            twice,
            "-m",
            model,
        ): "line 2: the id 'd0' in column 'nr' stands in row",
        ("learn", tmp_path / "bad.jsonl", "-m", model): "bad.jsonl line 1",
    }
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    for arguments, sentence in cases.items():
        said = fails(capsys, *arguments, *(["-q"] if arguments[0] != "explain" else []))
        assert sentence in said, said
        assert "Traceback" not in said
    assert not other.exists(), "something half-written was left"
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_parts_of_single_words_count_by_themselves(tmp_path: Path) -> None:
    words = [{"text": f"wort{i:03}ung", "labels": ["noun"]} for i in range(30)]
    words += [{"text": f"wort{i:03}lich", "labels": ["adjective"]} for i in range(30)]
    table = write_jsonl(tmp_path / "words.jsonl", words)
    ask = ["train", table, "--text", "text", "--labels", "labels", "-m", tmp_path / "m"]
    ask += ["--set", "device=cpu"]
    said = "parts of words count too (char_ngrams=4)"
    for more, told in (([], True), (["--set", "char_ngrams=none"], False)):
        done = run(*ask, *more)
        assert done.exit_code == 0, done.output
        assert (said in done.output.replace("\n", " ")) == told
        assert bool(TextTagger.load(tmp_path / "m").features.char_ngrams_) == told
