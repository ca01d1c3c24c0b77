"""What a party can do: the kinds of fact a Chronicle world is made of.

A deed belongs to one phase (before, during, after) and one theme (people, supplies, places); who did
it is drawn with the world. Its object puts a cue word right before the value, always the same
way, so that a reader can copy the value from the source: `a loan of 620 crowns`.

Each row: object | verbs (past/participle when they differ) | because … | with the result that …
"""

from dataclasses import dataclass
from enum import IntEnum


class Phase(IntEnum):
    BEFORE = 0
    DURING = 1
    AFTER = 2


class Theme(IntEnum):
    PEOPLE = 0
    SUPPLIES = 1
    PLACES = 2


@dataclass(frozen=True, slots=True)
class Deed:
    """One kind of fact."""

    cue: str
    """The word that names it in a plan; unique in Chronicle."""
    phase: Phase
    theme: Theme
    value_kind: str
    """person, number, place or year."""
    before_value: str
    after_value: str
    verbs: tuple[tuple[str, str], ...]
    """Past and participle; the verbs of one deed mean the same."""
    reason: str
    result: str
    shared: bool
    """Open to every category, or to one only."""

    def object_with(self, value: str) -> str:
        return f"{self.before_value}{value}{self.after_value}"

    def definite_with(self, value: str) -> str:
        """The object when the reader already knows of it: the loan of 620 crowns."""
        article, _, rest = self.before_value.partition(" ")
        assert article in ("a", "an", "the"), self
        return f"the {rest}{value}{self.after_value}"


def parse_deeds(table: str, *, shared: bool) -> tuple[Deed, ...]:
    """Read the rows of a table; a line `@ PHASE THEME` says where the rows below it belong."""
    deeds, phase, theme = [], Phase.BEFORE, Theme.PEOPLE
    for line in filter(None, map(str.strip, table.splitlines())):
        if line.startswith("@"):
            _, first, second = line.split()
            phase, theme = Phase[first], Theme[second]
            continue
        thing, verbs, reason, result = (part.strip() for part in line.split("|"))
        kind = next(k for k in ("person", "number", "place", "year") if f"<{k}>" in thing)
        before, after = thing.split(f"<{kind}>")
        cue = before.split()[1]
        pairs = [verb.strip().partition("/") for verb in verbs.split(",")]
        deeds.append(
            Deed(
                cue=cue,
                phase=phase,
                theme=theme,
                value_kind=kind,
                before_value=before,
                after_value=after,
                verbs=tuple((past, participle or past) for past, _, participle in pairs),
                reason=reason,
                result=result,
                shared=shared,
            )
        )
    return tuple(deeds)


SHARED_DEEDS = parse_deeds(
    """
    @ BEFORE PEOPLE
    the engineer <person> | hired, engaged | few local builders could read a plan | the first drawings were ready within a month
    the envoy <person> | sent out, sent abroad | letters alone had moved nobody | two rivals agreed to listen
    the steward <person> | appointed, named | the accounts had been left in disorder | every key in the house changed hands
    an escort of <number> riders | raised, gathered | the roads were no longer safe | travelers began to move in daylight again
    the scholar <person> | consulted, questioned | the old records were hard to read | several forgotten rights came to light
    @ BEFORE SUPPLIES
    a loan of <number> crowns | took/taken, accepted | the treasury was nearly empty | lenders gained a voice in every later decision
    a store of <number> sacks | laid in, filled | a hard season was expected | the price of flour stayed calm for a while
    a tax of <number> pence | levied, imposed | older dues no longer covered the cost | farmers began to hide what they grew
    a team of <number> oxen | bought, purchased | heavy loads had to cross soft ground | carts could move even in wet weather
    a chest of <number> coins | set aside, locked away | an emergency seemed likely | the sum was still there when trouble came
    @ BEFORE PLACES
    the bridge at <place> | repaired, mended | carts had begun to avoid the crossing | goods reached the upper villages sooner
    the inn at <place> | rented, leased | visitors needed a neutral roof | strangers could meet there without remark
    the mill at <place> | bought up, purchased | grain was worth more once it was ground | neighbors had to ask before they used the stones
    the ford at <place> | surveyed, measured | no map showed the true depth | boats were chosen with more care
    the charter of <year> | invoked, cited | an old pledge seemed the safest ground | lawyers on every side went back to the text
    @ DURING PEOPLE
    the marshal <person> | backed, supported | quick orders were needed | quarrels over command came to an end
    the clerk <person> | arrested, detained | a private list had been found | other officials grew careful in what they wrote
    the scout <person> | ransomed, bought back | nobody else knew the hill paths | news from the hills began to flow again
    a crowd of <number> refugees | sheltered, took in/taken in | the open country was not safe | spare rooms filled up everywhere
    the surgeon <person> | called in, summoned | the sick outnumbered the healthy | fever slowly left the crowded streets
    @ DURING SUPPLIES
    a cargo of <number> barrels | sold, sold off | ready money was needed at once | debts could be met for another month
    a herd of <number> cattle | seized, drove off/driven off | meat had become scarce | farmers moved their animals into the woods
    a ransom of <number> marks | paid, handed over | delay would have cost more | three families were reunited
    a ration of <number> loaves | handed out, shared out | hunger was turning into anger | the queues at the ovens stayed peaceful
    a wage of <number> groats | promised, offered | volunteers had stopped coming | idle hands returned to the work
    @ DURING PLACES
    the tower at <place> | held, guarded | it looked down on the main road | nobody could pass unseen
    the camp at <place> | abandoned, gave up/given up | the ground had turned to marsh | much useful gear was left behind
    the barn at <place> | burned, burned down | it could have hidden an enemy | the glow was seen for miles
    the ferry at <place> | closed, shut down | the river could no longer be watched | the two banks lost touch with each other
    the hall at <place> | occupied, took over/taken over | a central meeting place was wanted | orders could be given from one table
    @ AFTER PEOPLE
    the judge <person> | elected, chose/chosen | old disputes had to be heard fairly | the first hearings began before winter
    the farmer <person> | compensated, repaid | a house had been lost by mistake | other claims followed
    the prisoner <person> | released, freed | the charge had never been proved | a long feud was allowed to cool
    a jury of <number> elders | called, assembled | memories of the events differed | one agreed account was written down
    the painter <person> | commissioned, employed | a record for later years was wanted | the finished panel drew visitors from far away
    @ AFTER SUPPLIES
    a fine of <number> florins | paid off, settled | the peace depended on it | the creditors went home satisfied
    a pension of <number> shillings | granted, awarded | the wounded could no longer work | younger people were willing to serve again
    a debt of <number> ducats | canceled, forgave/forgiven | nothing was left to collect | trade between old rivals picked up
    a gift of <number> blankets | sent, delivered | the cold had come early | old resentments softened a little
    the harvest of <year> | pledged, promised | no other security was left | the fields were watched more closely than ever
    @ AFTER PLACES
    the chapel at <place> | rebuilt, restored | a place to mourn was needed | services were held there every spring
    the market at <place> | reopened, opened again | trade had gone elsewhere | stalls were full by midsummer
    the well at <place> | dug, sank/sunk | the old water could not be trusted | families moved back to the lower streets
    the archive at <place> | founded, set up | papers lay scattered in private hands | later writers had something to work from
    the statute of <year> | signed, sealed | vague promises had failed before | both the rich and the poor could appeal to one text
    """,
    shared=True,
)
