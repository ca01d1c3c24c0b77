"""The eight kinds of history that Chronicle invents, each with deeds of its own.

Paper: §4.3 (a pilot balanced across eight historical categories).
"""

from dataclasses import dataclass

from pdt.sources.chronicle.deeds import SHARED_DEEDS, Deed, parse_deeds


@dataclass(frozen=True, slots=True)
class Category:
    """One kind of event."""

    key: str
    noun: str
    """As in `the siege`."""
    title_form: str
    event_form: str
    """The event in running text, with `{place}`."""
    opening: str
    """What such an event is, for the first paragraph of a long article."""
    own_deeds: tuple[Deed, ...]

    @property
    def deeds(self) -> tuple[Deed, ...]:
        return self.own_deeds + SHARED_DEEDS


def _category(
    key: str, noun: str, title_form: str, event_form: str, opening: str, table: str
) -> Category:
    return Category(key, noun, title_form, event_form, opening, parse_deeds(table, shared=False))


CATEGORIES = (
    _category(
        "sieges",
        "siege",
        "Siege of {place}",
        "the siege of {place}",
        "It was less a single battle than a long contest of patience, in which walls, bread and "
        "rumor mattered as much as courage.",
        """
        @ BEFORE PEOPLE
        a garrison of <number> men | mustered, called up | the walls were too long for the watch | every gate had guards by the end of the month
        @ BEFORE SUPPLIES
        a stock of <number> arrows | ordered, collected | the old supply had rotted in its boxes | fletchers worked through the night
        @ BEFORE PLACES
        the gatehouse at <place> | strengthened, reinforced | its hinges had rusted through | even heavy rams would have made slow work of it
        @ DURING PEOPLE
        the gunner <person> | promoted, praised | one lucky shot had broken a great engine | others tried to copy the same aim
        @ DURING SUPPLIES
        a convoy of <number> wagons | brought in, escorted | the ovens had been cold for three days | bread was baked again that night
        @ DURING PLACES
        the trench at <place> | dug, cut | open ground had cost too many lives | the lines crept closer to the wall
        @ AFTER PEOPLE
        the hostage <person> | exchanged, handed back | both sides wanted a sign of good faith | talks moved faster than before
        @ AFTER SUPPLIES
        a share of <number> horses | claimed, received | the spoils had been badly divided | a new quarrel began over the stables
        @ AFTER PLACES
        the rampart at <place> | pulled down, tore down/torn down | nobody wanted to be trapped again | its stones went into ordinary houses
        """,
    ),
    _category(
        "revolts",
        "revolt",
        "{place} Revolt",
        "the {place} revolt",
        "It grew out of many small grievances, none of them new, which happened to come together "
        "in one bad year.",
        """
        @ BEFORE PEOPLE
        the preacher <person> | protected, defended | sermons had become the only safe news | crowds grew larger every week
        @ BEFORE SUPPLIES
        a petition of <number> names | drew up/drawn up, presented | complaints had gone unanswered | the paper was passed from hand to hand
        @ BEFORE PLACES
        the tavern at <place> | watched, searched | meetings were held there after dark | the talk moved into private kitchens
        @ DURING PEOPLE
        a band of <number> rebels | armed, recruited | anger had spread to the farms | the roads were lost within a week
        @ DURING SUPPLIES
        a haul of <number> pikes | captured, carried off | most of the crowd had only tools | the next clash was far more equal
        @ DURING PLACES
        the armory at <place> | stormed, raided | its doors were weakly guarded | weapons turned up in every village
        @ AFTER PEOPLE
        the ringleader <person> | tried, prosecuted | an example was wanted | the speech from the dock was copied widely
        @ AFTER SUPPLIES
        a bounty of <number> nobles | posted, announced | some leaders were still in hiding | two of them were betrayed by friends
        @ AFTER PLACES
        the prison at <place> | emptied, shut | its cells had become a scandal | the building stood silent for years
        """,
    ),
    _category(
        "treaties",
        "congress",
        "Congress of {place}",
        "the congress of {place}",
        "It brought tired rivals to one table, and it turned on small gestures at least as much as "
        "on great principles.",
        """
        @ BEFORE PEOPLE
        the mediator <person> | welcomed, invited | no rival would speak first | a date was fixed at last
        @ BEFORE SUPPLIES
        a tribute of <number> furs | demanded, required | past losses had never been paid for | opinion hardened on the other side
        @ BEFORE PLACES
        the convent at <place> | proposed, suggested | neither side owned the ground | the sisters were asked to move for a season
        @ DURING PEOPLE
        a party of <number> delegates | led, brought | every district wanted a voice | the sessions became long and noisy
        @ DURING SUPPLIES
        a bribe of <number> rubies | refused, rejected | spies were everywhere that week | the mood in the chamber improved
        @ DURING PLACES
        the border at <place> | redrew/redrawn, moved | the old line cut through pastures | shepherds could follow their flocks again
        @ AFTER PEOPLE
        the ambassador <person> | received, hosted | the new peace needed daily care | small disputes were settled over dinner
        @ AFTER SUPPLIES
        an indemnity of <number> talers | collected, gathered in | the damage had been listed house by house | the worst ruins were cleared
        @ AFTER PLACES
        the fort at <place> | surrendered, handed over | it could not be kept by agreement | the guns were carted away by night
        """,
    ),
    _category(
        "famines",
        "famine",
        "{place} Famine",
        "the {place} famine",
        "It followed two failed harvests, but bad weather alone does not explain who went hungry "
        "and who did not.",
        """
        @ BEFORE PEOPLE
        the miller <person> | accused, blamed | short weights had been found | other traders marked their sacks more honestly
        @ BEFORE SUPPLIES
        a reserve of <number> bushels | sold abroad, exported | prices elsewhere were higher | the bins stood empty when winter came
        @ BEFORE PLACES
        the granary at <place> | locked up, sealed up | thefts had become common | rumors spread about what lay inside
        @ DURING PEOPLE
        a group of <number> orphans | adopted, cared for | the almshouse had run out of beds | several of them stayed for life
        @ DURING SUPPLIES
        a dole of <number> ladles | served, provided | the poor could no longer buy grain | fewer people left for the coast
        @ DURING PLACES
        the kitchen at <place> | opened, ran/run | hot food saved fuel | long lines formed there before sunrise
        @ AFTER PEOPLE
        the baker <person> | rewarded, honored | honest bread had been rare | a small sign was placed above the shop
        @ AFTER SUPPLIES
        a price of <number> farthings | fixed, set | sellers could not be trusted to be fair | arguments at the scales grew rare
        @ AFTER PLACES
        the orchard at <place> | planted, laid out | grain alone had proved too risky | children had fruit within five years
        """,
    ),
    _category(
        "expeditions",
        "expedition",
        "{place} Expedition",
        "the {place} expedition",
        "It set out with more confidence than knowledge, and most of what it learned was learned "
        "by mistake.",
        """
        @ BEFORE PEOPLE
        the navigator <person> | recruited, signed on | the coast was poorly known | the route was drawn afresh
        @ BEFORE SUPPLIES
        a supply of <number> casks | loaded, packed | fresh water would be scarce | the ships sat low in the harbor
        @ BEFORE PLACES
        the dock at <place> | cleared, prepared | larger hulls needed deeper moorings | the fleet could gather in one basin
        @ DURING PEOPLE
        the guide <person> | dismissed, sent home | two wrong turns had cost a month | the maps had to be trusted instead
        @ DURING SUPPLIES
        a train of <number> mules | drove/driven, led along | the tracks were too steep for carts | the heavy tools reached the high pass
        @ DURING PLACES
        the cairn at <place> | built, raised | a mark was needed for the way back | the return journey took half the time
        @ AFTER PEOPLE
        the mapmaker <person> | retained, kept on | the notes were in a poor state | a printed chart appeared the next year
        @ AFTER SUPPLIES
        a prize of <number> guineas | won, earned | the new route had been proved | other crews began to plan their own voyages
        @ AFTER PLACES
        the museum at <place> | endowed, funded | the finds were too many for one house | school classes visited the rooms for generations
        """,
    ),
    _category(
        "reforms",
        "reform",
        "{place} Reform",
        "the {place} reform",
        "It began as a matter of bookkeeping and ended by changing who could speak, who could vote "
        "and who had to pay.",
        """
        @ BEFORE PEOPLE
        the lawyer <person> | instructed, briefed | the old law was full of gaps | a sharp pamphlet went from hand to hand
        @ BEFORE SUPPLIES
        a census of <number> hearths | completed, finished | nobody knew who really paid | the burden turned out to be very uneven
        @ BEFORE PLACES
        the registry at <place> | inspected, audited | false entries had been reported | half the ledgers were copied again
        @ DURING PEOPLE
        a panel of <number> members | formed, convened | open debate had reached no end | a short draft was ready in weeks
        @ DURING SUPPLIES
        a budget of <number> pounds | approved, passed | new offices cost money | clerks were paid on time
        @ DURING PLACES
        the school at <place> | expanded, widened | too few people could read the new rules | a second class of pupils was admitted
        @ AFTER PEOPLE
        the inspector <person> | installed, confirmed | the rules meant little without checks | surprise visits became common
        @ AFTER SUPPLIES
        a rebate of <number> dollars | introduced, allowed | the first year had been too harsh | protests slowly faded
        @ AFTER PLACES
        the court at <place> | abolished, dissolved | two sets of judges had caused confusion | cases moved to a single bench
        """,
    ),
    _category(
        "trade-disputes",
        "dispute",
        "{place} Trade Dispute",
        "the {place} trade dispute",
        "It was fought with ledgers, seals and closed doors, and only once or twice with fists.",
        """
        @ BEFORE PEOPLE
        the broker <person> | recommended, put forward | the partners no longer trusted each other | contracts were written by one hand
        @ BEFORE SUPPLIES
        a duty of <number> stivers | announced, declared | foreign cloth was cheaper | smugglers found a new line of work
        @ BEFORE PLACES
        the warehouse at <place> | extended, enlarged | goods had been left in the wet | larger orders could wait for a better price
        @ DURING PEOPLE
        the smuggler <person> | caught, tracked down | night landings had grown bold | honest captains breathed more easily
        @ DURING SUPPLIES
        a shipment of <number> bales | blocked, held back | the seals had been broken | weavers stood idle for a season
        @ DURING PLACES
        the quay at <place> | blockaded, barred | words had achieved nothing | ships waited outside for weeks
        @ AFTER PEOPLE
        the arbiter <person> | accepted, agreed on | no party could judge its own case | the hearing lasted only nine days
        @ AFTER SUPPLIES
        a quota of <number> fleeces | conceded, granted | each side needed something to show | the looms were busy again by autumn
        @ AFTER PLACES
        the fair at <place> | revived, brought back | the merchants had drifted away | tents stood along both banks again
        """,
    ),
    _category(
        "floods",
        "flood",
        "{place} Flood",
        "the {place} flood",
        "It came at the end of a wet winter, and it showed how much of the lowland had been left "
        "to luck.",
        """
        @ BEFORE PEOPLE
        the warden <person> | warned, alerted | the gauge had risen for days | some families moved their goods upstairs
        @ BEFORE SUPPLIES
        a pile of <number> planks | stacked, put by | repairs were expected in spring | carpenters had wood when others had none
        @ BEFORE PLACES
        the dike at <place> | neglected, ignored | no one would pay for the earth | the first breach opened there
        @ DURING PEOPLE
        the boatman <person> | paid, called upon | whole streets could be reached only by water | many were lifted from their roofs
        @ DURING SUPPLIES
        a wall of <number> bags | piled up, put up | the water climbed by the hour | the main street stayed dry
        @ DURING PLACES
        the causeway at <place> | breached, cut through | the pressure had to go somewhere | the level in the town fell at last
        @ AFTER PEOPLE
        the mason <person> | took on/taken on, hired | most walls had lost their footing | new houses stood on stone
        @ AFTER SUPPLIES
        a fund of <number> guilders | opened, started | the losses fell on the poorest | roofs were mended before winter
        @ AFTER PLACES
        the sluice at <place> | installed, fitted | the marsh had no safe outlet | later high water did little harm
        """,
    ),
)
