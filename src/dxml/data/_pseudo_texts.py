"""Generated articles: English words, invented findings, and topics that are known.

Every subject and every aspect has words of its own. An article has one aspect and one to three
subjects; its sentences take their words from those. For each of its subjects it carries the labels
``Topic: bees`` and, narrower, ``Topic: bees, climate``, so that a method that works finds them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dxml._core.random import spawn
from dxml.exceptions import ParameterError
from dxml.text._tables import TextTable

__all__ = ["make_texts"]

_SUBJECTS = {
    name: tuple(words.split())
    for name, words in {
        "bees": "hive honey pollen queen nectar wax",
        "rivers": "bank current delta flood sediment tributary",
        "bread": "crust dough flour oven rye yeast",
        "bridges": "arch cable girder pier span truss",
        "whales": "baleen blubber calf pod song breaching",
        "violins": "bow fingerboard peg string tailpiece varnish",
        "glaciers": "crevasse firn ice moraine snout meltwater",
        "teeth": "cavity dentine enamel gum molar plaque",
        "railways": "carriage gauge locomotive platform sleeper switch",
        "orchards": "apple blossom graft pear pruning rootstock",
        "volcanoes": "ash caldera crater lava magma vent",
        "sheep": "ewe fleece flock lamb pasture shearing",
        "ships": "anchor deck hull keel mast rudder",
        "lungs": "alveoli breath bronchi cough pleura windpipe",
        "forests": "beech bark canopy oak sapling understorey",
        "paintings": "brush canvas fresco pigment portrait easel",
        "deserts": "cactus dune oasis sand scorpion mirage",
        "hearts": "aorta atrium beat pulse valve ventricle",
        "cheese": "brine curd rennet rind whey ripening",
        "stars": "dwarf galaxy nebula parallax spectrum supernova",
        "schools": "classroom homework lesson pupil teacher timetable",
        "mushrooms": "cap gill hypha mycelium spore toadstool",
        "mines": "coal copper pit seam shaft tunnel",
        "eyes": "cornea eyelid iris lens retina tears",
        "markets": "auction bargain price stall trader vendor",
        "birds": "beak feather nest plumage roost wing",
        "clocks": "chime dial escapement pendulum spring winding",
        "vineyards": "cask grape harvest terroir vine vintage",
        "bones": "cartilage femur fracture joint marrow spine",
        "prisons": "cell guard inmate parole sentence warden",
        "tea": "brew kettle leaf pot steeping tannin",
        "earthquakes": "aftershock epicentre fault magnitude rupture tremor",
        "bicycles": "brake chain handlebar pedal saddle spoke",
        "theatres": "actor curtain plot rehearsal scene stage",
        "horses": "foal gallop bridle hoof mare stallion",
        "lakes": "algae basin plankton reed shore trout",
        "letters": "envelope ink postman seal stamp writing",
        "kidneys": "dialysis filtration nephron stone ureter urine",
        "castles": "battlement dungeon gate moat portcullis tower",
        "batteries": "anode cathode charge electrolyte lithium voltage",
    }.items()
}
_ASPECTS = {
    name: tuple(words.split())
    for name, words in {
        "climate": "drought humidity rainfall temperature warming",
        "history": "archive century chronicle medieval origin",
        "cost": "budget expense investment subsidy wage",
        "safety": "accident alarm hazard injury protection",
        "ageing": "decades decline elderly lifespan wear",
        "teaching": "apprentice course curriculum skill workshop",
        "measurement": "calibration instrument precision scale sensor",
        "law": "court licence regulation statute tribunal",
        "repair": "maintenance replacement restoration spare tool",
        "language": "dialect name proverb vocabulary word",
    }.items()
}
_SENTENCES = (
    "We describe the {0} and the {1} of {2} cases.",
    "The {0} was closely tied to the {1}.",
    "In {2} of them the {0} came before any change of {1}.",
    "A larger {0} went with a smaller {1}.",
    "Neither the {0} nor the {1} explains all that was seen.",
    "Over {2} months, the {0} was compared with the {1}.",
    "It is suggested that the {1} depends on the {0}.",
)
_TITLES = ("On {0} and {1}", "{0} in the light of {1}", "New findings about {0}: {1}")
_MAX_SUBJECTS = 3  # of an article
_SUBJECT_WORD_CHANCE = 0.6  # that the second word of a sentence is of the subject, not the aspect


def make_texts(n_texts: int, n_subjects: int = 40, random_state: int | None = 0) -> TextTable:
    """Generate articles whose topics can be told from their words.

    Parameters
    ----------
    n_texts : int
    n_subjects : int
        3 to 40; there are eleven labels for each, one broad and ten narrow. The subject of rank r
        is drawn with a chance in proportion to r ** -0.5.
    random_state : int or None
        Same number, same articles. None: new ones every time.

    Returns
    -------
    TextTable
        Ids are "article-1", …; the first line of a text is its title.

    Examples
    --------
    >>> table = make_texts(2)
    >>> table.titles[0]
    'Flood and hive in the light of warming'
    >>> table.labels[0]
    ('Topic: rivers', 'Topic: rivers, climate', 'Topic: bees', 'Topic: bees, climate')
    """
    if n_texts < 1:
        raise ParameterError(f"n_texts must be 1 or more, got {n_texts!r}.")
    if not _MAX_SUBJECTS <= n_subjects <= len(_SUBJECTS):
        raise ParameterError(
            f"n_subjects must be in {_MAX_SUBJECTS}..{len(_SUBJECTS)}, got {n_subjects!r}."
        )
    rng = spawn(random_state, "articles")["articles"]
    subjects = list(_SUBJECTS)[:n_subjects]
    chances = np.arange(1, n_subjects + 1) ** -0.5
    chances /= chances.sum()
    texts, labels = [], []
    for _ in range(n_texts):
        size = rng.integers(1, _MAX_SUBJECTS + 1)
        chosen = [subjects[i] for i in rng.choice(n_subjects, size, replace=False, p=chances)]
        aspect = _one(rng, list(_ASPECTS))
        texts.append(_article(rng, chosen, aspect))
        labels.append(
            tuple(f"Topic: {name}{more}" for name in chosen for more in ("", f", {aspect}"))
        )
    ids = tuple(f"article-{i}" for i in range(1, n_texts + 1))
    return TextTable(tuple(texts), tuple(labels), ids)


def _article(rng: np.random.Generator, subjects: list[str], aspect: str) -> str:
    """A title of words, and on the next line three sentences for each subject."""
    words = [_one(rng, _SUBJECTS[name]) for name in subjects]
    title = _one(rng, _TITLES).format(" and ".join(words), _one(rng, _ASPECTS[aspect]))
    sentences = []
    for name in subjects * 3:
        first = _one(rng, _SUBJECTS[name])
        others = _SUBJECTS[name] if rng.random() < _SUBJECT_WORD_CHANCE else _ASPECTS[aspect]
        second = _one(rng, [word for word in others if word != first])
        sentences.append(_one(rng, _SENTENCES).format(first, second, rng.integers(2, 90)))
    return f"{title[0].upper()}{title[1:]}\n{' '.join(sentences)}"


def _one(rng: np.random.Generator, of: Sequence[str]) -> str:
    return of[int(rng.integers(len(of)))]
