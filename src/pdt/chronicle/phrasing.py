"""How a fact can be said: active or passive, with a time, a manner, a reason, a result.

Every pool is plain data. The last time, manner, opening, closing and request are said in the test
split only.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pdt.chronicle.deeds import Phase, Theme
from pdt.chronicle.dials import Dials
from pdt.chronicle.world import World, WorldFact
from pdt.terms import Split

TIMES = {
    Phase.BEFORE: (
        "",
        "",
        "Early on, ",
        "In the quiet months, ",
        "Well before the {noun}, ",
        "While there was still time, ",
        "Some months before the {noun}, ",
    ),
    Phase.DURING: (
        "",
        "",
        "Once the {noun} began, ",
        "In the worst weeks, ",
        "While the {noun} lasted, ",
        "At the height of the {noun}, ",
        "In the middle of the {noun}, ",
    ),
    Phase.AFTER: (
        "",
        "",
        "Afterward, ",
        "When the {noun} was over, ",
        "In later years, ",
        "Once calm returned, ",
        "After the {noun} had ended, ",
    ),
}
MANNERS = (
    "",
    "",
    "",
    " after a long argument",
    " on short notice",
    " with great care",
    " before many witnesses",
    " after some thought",
    " against some advice",
    ", to general surprise",
    " without much delay",
)
"""The last time and the last manner are for the test split."""
FIRST_MANNER = MANNERS.count("")
SHORT = 8
"""Words; a shorter sentence would count against long-form prose (§7.2)."""

ON_ANYTHING = (
    "For a while people spoke about little else.",
    "Not everyone was pleased, but nobody stood in the way.",
    "It was a step that many would remember.",
    "In the days that followed even strangers asked about it.",
    "The matter was talked over in every household.",
    "Nobody could say that such a matter had been hidden.",
)
REMARKS = {
    "person": (
        "The name was soon known in every street.",
        "Few people had expected such a choice from them.",
        "Old friends and old enemies took note of it.",
        *ON_ANYTHING,
    ),
    "number": (
        "The figure was entered in the books twice.",
        "Careful hands counted everything again at the door.",
        "It was more than most people had thought possible.",
        "Such numbers were rare in the country in those days.",
        "Some said too little, and others said too much.",
        *ON_ANYTHING,
    ),
    "place": (
        "Every carter on the road knew the spot.",
        "The work was plain to see from far away.",
        "Travelers noticed the change at once and spoke of it.",
        "The ground there had a long history of its own.",
        "Those who lived nearby had mixed feelings about it.",
        "It was not a large place, but it mattered.",
        "For many years children were told about it.",
    ),
    "crowd": ON_ANYTHING,
    "year": ON_ANYTHING,
}
"""By the kind of value that the fact before them has; a crowd is a number of people.

None is rare and none begins like a shorter sentence. A lane that had seldom read `The date was
easy to remember and hard to dispute.` wrote `The date was easy to remember.`
"""

REASONS = (
    "{clause}, because {reason}",
    "{clause}, for {reason}",
    "since {reason}, {clause}",
    "{reason}, and so {clause}",
    "{clause}; after all, {reason}",
)
RESULTS = (
    "As a result, {result}.",
    "Before long, {result}.",
    "The effect was soon visible: {result}.",
    "By most accounts, {result}.",
    "From then on things looked different: {result}.",
    "One consequence is well recorded: {result}.",
    "Those who looked back on it agreed that {result}.",
    "It is known from several letters that {result}.",
    "As one witness noted, {result}.",
    "This had its effect, and {result}.",
    "It did not pass without notice: {result}.",
    "Soon enough, {result}.",
)

PHASE_TOPICS = {
    Phase.BEFORE: (
        "None of this came out of a clear sky, and the signs can be read in what was done early.",
        "Looking back, contemporaries agreed that the decisive steps were taken in advance.",
        "Preparation took many forms, some of them open and some of them discreet.",
        "The years before {event} were busier than they seemed at the time.",
        "Much of what happened later was settled while the country was still calm.",
        "Several measures of that time look modest on paper but proved important.",
    ),
    Phase.DURING: (
        "Once matters came to a head, there was little room for second thoughts.",
        "Events now moved faster than the messengers who reported them.",
        "The hardest weeks tested habits that had never been questioned before.",
        "What had been planned in quiet rooms now had to be done in public.",
        "Those who lived through {event} remembered above all how uncertain it felt.",
        "Improvisation became the rule, and some of it worked surprisingly well.",
    ),
    Phase.AFTER: (
        "The end of {event} did not mean the end of the work.",
        "Recovery was slow, uneven and full of small disputes.",
        "In the following years attention turned from survival to repair.",
        "Peace brought its own kind of labor, less dramatic but no less necessary.",
        "Many of the lasting changes date from this later period.",
        "Those who came back found that a good deal had to be built anew.",
    ),
}
THEME_TOPICS = {
    Theme.PEOPLE: (
        "Individuals mattered here, and a few names return again and again in the records.",
        "Behind the formal decisions stood particular men and women.",
        "Trust was scarce, so the choice of people was never a small matter.",
        "Letters of the time speak more often of persons than of principles.",
        "Who was chosen, and who was passed over, could decide the outcome.",
        "The human side of the story is unusually well recorded.",
    ),
    Theme.SUPPLIES: (
        "Money and goods set the limits of what could be attempted.",
        "The surviving accounts allow a fairly exact picture of the means involved.",
        "Numbers in such sources should be read with care, but they agree with one another.",
        "Every plan had its price, and someone had to find the means.",
        "Stores and sums were discussed as warmly as any question of honor.",
        "A good deal of the quarrel can be followed in columns of figures.",
    ),
    Theme.PLACES: (
        "Geography explains more than many chroniclers were willing to admit.",
        "A handful of sites carried far more weight than their size suggests.",
        "Some of the places in question can still be visited today.",
        "Control of the ground was never only a military question.",
        "Buildings and crossings became arguments in their own right.",
        "The landscape itself was altered by these choices.",
    ),
}
PARTY_TOPICS = (
    "{Party} had its own view of what was at stake.",
    "The part played by {party} has often been underrated.",
    "From the beginning {party} acted with a purpose that others found hard to read.",
    "The records of {party} are detailed enough to follow its decisions closely.",
    "No account would be complete without the deeds of {party}.",
    "Opinions about {party} were divided then and remain so today.",
    "For {party} the question was never whether to act, but how soon.",
    "Much has been written about {party}, not all of it friendly.",
    "What {party} did can be told in some detail.",
    "It is worth pausing over the conduct of {party}.",
    "Neighbors watched {party} with a mixture of envy and worry.",
    "Caution was the usual habit of {party}, though not its only one.",
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and the characters in it that state a fact (none for a remark)."""

    text: str
    fact: str | None = None
    start: int = 0
    end: int = 0


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def pick(stream: random.Random, pool: Sequence[str], split: Split) -> str:
    """One entry; the last one is kept for the test split."""
    return pool[stream.randrange(len(pool) - (split is not Split.TEST))]


def pick_fresh(stream: random.Random, pool: Sequence[str], split: Split, used: set[str]) -> str:
    """One entry that the text around it has not used yet, or nothing."""
    choice = pick(stream, pool, split)
    if choice in used:
        choice = pick(stream, pool, split)
    if choice in used:
        return ""
    if choice:
        used.add(choice)
    return choice


def statement_of(world: World, fact: WorldFact) -> str:
    """The fact as a sentence that stands alone."""
    return f"{capital(clause(world, fact, verb=0))}."


def clause(
    world: World, fact: WorldFact, *, verb: int, passive: bool = False, short: bool = False
) -> str:
    """The fact as a clause: who did what, or what was done by whom."""
    party = world.parties[fact.party]
    doer = party.short if short else party.full
    past, participle = fact.deed.verbs[verb]
    thing = fact.deed.object_with(fact.value)
    return f"{thing} was {participle} by {doer}" if passive else f"{doer} {past} {thing}"


def tell(
    stream: random.Random,
    world: World,
    fact: WorldFact,
    split: Split,
    used: set[str],
    *,
    short: bool = False,
    reason: bool = False,
    dated: float = 0.0,
) -> Sentence:
    """One sentence that states the fact, in one of its many wordings; `used` ones are avoided.

    `dated` is how often its year is given. A source gives it always or never: a section may only
    repeat what the source says.
    """
    core = clause(
        world,
        fact,
        verb=stream.randrange(len(fact.deed.verbs)),
        passive=stream.random() < 0.35,
        short=short,
    )
    time, told = "", core
    if stream.random() < dated and fact.deed.value_kind != "year":
        if stream.random() < 0.4:
            time = f"In {fact.year}, "
        else:
            told = f"{core} in {fact.year}"
    else:
        time = pick_fresh(stream, TIMES[fact.deed.phase], split, used)
        time = time.format(noun=world.category.noun)
    if reason:
        form = REASONS[stream.randrange(len(REASONS))]
        body = form.format(clause=told, reason=fact.deed.reason)
    else:
        manner = pick_fresh(stream, MANNERS, split, used)
        if not manner and len((time + told).split()) < SHORT:
            manner = MANNERS[stream.randrange(FIRST_MANNER, len(MANNERS) - 1)]
        body = told + manner
    text = capital(time + body) + "."
    start = text.casefold().index(core.casefold())
    return Sentence(text, fact.id, start, start + len(core))


def cue_first(stream: random.Random, dials: Dials) -> bool:
    """Whether the next fact is told from its cue."""
    return dials.cue_first and (dials.cue_share == 1 or stream.random() < dials.cue_share)


def tell_from_cue(
    stream: random.Random, world: World, fact: WorldFact, *, begin: str = ""
) -> Sentence:
    """The fact behind its cue: `As for the wall, the Coldford league put up a wall of 462 bags.`

    Doer and value both stand right behind the cue, where a small decoder can copy them from.
    """
    core = clause(world, fact, verb=stream.randrange(len(fact.deed.verbs)))
    text = capital(f"{begin}as for the {fact.deed.cue}, {core}.")
    start = text.index(core)
    return Sentence(text, fact.id, start, start + len(core))


class Topics:
    """Topic sentences that do not repeat within one document."""

    def __init__(self, stream: random.Random, world: World) -> None:
        self._world = world
        self._left: dict[object, list[str]] = {}
        self._stream = stream

    def on(self, key: Phase | Theme | int) -> str | None:
        """A fresh sentence about a phase, a theme or a party (its number); None when used up."""
        # Parties share one pool: the same remark about two of them would read like a form letter.
        name = ("party", 0) if type(key) is int else (type(key).__name__, int(key))
        if name not in self._left:
            pool = list(self._pool(key))
            self._stream.shuffle(pool)
            self._left[name] = pool
        if not self._left[name]:
            return None
        party = self._world.parties[key].full if type(key) is int else ""
        return (
            self._left[name]
            .pop()
            .format(party=party, Party=capital(party), event=self._world.event)
        )

    def _pool(self, key: Phase | Theme | int) -> Sequence[str]:
        if isinstance(key, Phase):
            return PHASE_TOPICS[key]
        return THEME_TOPICS[key] if isinstance(key, Theme) else PARTY_TOPICS


class Outcomes:
    """What came of a fact; every way to introduce it is used before one is used again."""

    def __init__(self, stream: random.Random) -> None:
        self._stream = stream
        self._left: list[str] = []

    def next(self, fact: WorldFact) -> str:
        if not self._left:
            self._left = self._stream.sample(RESULTS, len(RESULTS))
        return self._left.pop().format(result=fact.deed.result)


class Remarks:
    """Remarks on a fact, by the kind of its value, none of them twice."""

    def __init__(self, stream: random.Random) -> None:
        self._stream = stream
        self._used: set[str] = set()

    def next(self, fact: WorldFact) -> str | None:
        kind = fact.deed.value_kind
        if kind == "number" and fact.deed.theme is Theme.PEOPLE:
            kind = "crowd"
        fresh = [remark for remark in REMARKS[kind] if remark not in self._used]
        if not fresh:
            return None
        remark = self._stream.choice(fresh)
        self._used.add(remark)
        return remark
