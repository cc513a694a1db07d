"""PubMed's XML, converted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from xml.etree.ElementTree import ParseError

import pytest

from dxml.data._pubmed import pubmed_to_jsonl
from dxml.progress import StageTimer

ARTICLE = """<PubmedArticle><MedlineCitation><PMID Version="1">{pmid}</PMID>
<Article><Journal><Title>No title of ours</Title></Journal>{article}</Article>
<CommentsCorrectionsList><CommentsCorrections><PMID>9</PMID></CommentsCorrections>
</CommentsCorrectionsList>{headings}</MedlineCitation>
<PubmedData><ArticleIdList><ArticleId>8</ArticleId></ArticleIdList></PubmedData></PubmedArticle>
"""
HEADINGS = """<MeshHeadingList>
<MeshHeading><DescriptorName UI="D2">Fish</DescriptorName>
<QualifierName UI="Q1">blood</QualifierName></MeshHeading>
<MeshHeading><DescriptorName UI="D1">Soup &amp; Sea</DescriptorName></MeshHeading>
<MeshHeading><DescriptorName UI="D2">Fish</DescriptorName></MeshHeading></MeshHeadingList>"""
FULL = """<ArticleTitle> On H<sub>2</sub>O  and <i>fish</i>.
</ArticleTitle><Abstract><AbstractText Label="AIM">Käse.</AbstractText>
<AbstractText>More <b>of</b> it.</AbstractText></Abstract>"""


def written(tmp_path: Path, *articles: str) -> Path:
    path = tmp_path / "a.xml.gz"
    text = f"<PubmedArticleSet>{''.join(articles)}</PubmedArticleSet>"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_records(tmp_path: Path) -> None:
    source = written(
        tmp_path,
        ARTICLE.format(pmid=5, article=FULL, headings=HEADINGS),
        ARTICLE.format(pmid=6, article=FULL, headings=""),
        ARTICLE.format(pmid=7, article="<ArticleTitle>[Short].</ArticleTitle>", headings=HEADINGS),
    )
    target = tmp_path / "a.jsonl.gz"
    pubmed_to_jsonl(source, target, timer := StageTimer())
    headings = {"labels": ["D2", "D1"], "label_names": ["Fish", "Soup & Sea"]}
    lines = gzip.decompress(target.read_bytes()).decode().splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "pmid": "5",
            "title": "On H2O  and fish.",
            "abstract": "Käse. More of it.",
            **headings,
        },
        {"pmid": "7", "title": "[Short].", "abstract": "", **headings},
    ]
    assert list(timer.seconds) == ["convert to JSON lines"]
    again = tmp_path / "b.jsonl.gz"
    pubmed_to_jsonl(source, again)
    assert again.read_bytes() == target.read_bytes()


def test_damaged_xml(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="mismatched tag"):
        pubmed_to_jsonl(written(tmp_path, "<PubmedArticle>"), tmp_path / "a.jsonl.gz")
