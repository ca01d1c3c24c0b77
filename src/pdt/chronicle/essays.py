"""What an article says besides its facts: leads, headings, parties, country, later views."""

LEADS = (
    "{Event} began in {began} and ended in {ended}.",
    "{Event} lasted from {began} to {ended}.",
    "{Event} took place in the years from {began} to {ended}.",
)
PARTIES_NAMED = (
    "Three parties took part in it: {a}, {b} and {c}.",
    "The main parties were {a}, {b} and {c}.",
    "It involved {a}, {b} and {c}.",
)
PHASE_HEADINGS = (
    ("Background", "Before the {noun}", "Origins"),
    ("The {noun}", "Course of the {noun}", "Main events"),
    ("Aftermath", "After the {noun}", "Later years"),
)
THEME_HEADINGS = (
    ("People", "People involved"),
    ("Money and supplies", "Supplies"),
    ("Places", "Places and works"),
)
NEUTRAL_HEADINGS = ("Overview", "Main account")
CELL_THEMES = ("People", "Supplies", "Places")
CELL_PHASES = ("before the {noun}", "during the {noun}", "after the {noun}")
PARTY_THEMES = ("its people", "its means", "its places")

BODY_NOTES = {
    "abbey": (
        "An old foundation with wide lands, it kept better records than any of its neighbors.",
        "Its abbots were used to speaking for the villages around them, whether asked or not.",
    ),
    "chapter": (
        "Made up of some twenty canons, it owned houses in almost every street.",
        "It preferred slow procedures, and its enemies said that it simply preferred delay.",
    ),
    "company": (
        "It had begun as a partnership of a few shipowners and had grown with the river trade.",
        "Profit was its declared aim, but it could be generous when its name was at stake.",
    ),
    "council": (
        "Its members were chosen for life and met twice a week above the customs house.",
        "It was proud of its independence and rarely acted without a vote.",
    ),
    "guild": (
        "It united several crafts that had once been bitter rivals.",
        "Membership was costly, yet it gave even modest workshops a voice in public affairs.",
    ),
    "league": (
        "It was a loose alliance of small towns, held together by a common fear of larger ones.",
        "Its decisions came late, but once they were made they were usually kept.",
    ),
    "militia": (
        "It was raised from the outlying farms and drilled on the common after church.",
        "Discipline varied from parish to parish, though nobody doubted its endurance.",
    ),
    "senate": (
        "It had inherited its forms from an older age and guarded them with some vanity.",
        "Most of its business was done by three or four families who knew each other well.",
    ),
}
PARTY_INTRODUCTIONS = (
    "{Party} was the oldest of the three.",
    "The second of the three was {party}.",
    "Last among the three came {party}.",
)
PARTY_CLOSINGS = (
    "Visitors from other regions often remarked on how seriously it took its duties.",
    "Its seal can be found on many documents of the period.",
    "Much of what is known about it comes from accounts that were never meant to be read outside.",
    "Later generations have judged it by the events described here, which is not wholly fair.",
    "At the time in question it was neither at its strongest nor at its weakest.",
)
LATER_VIEWS = (
    "The first full account of {event} was compiled within living memory by an unnamed clerk.",
    "It is a partial text, warm in praise of its patrons, yet its dates have stood up well.",
    "Two centuries later the story was rediscovered by local schoolmasters, who printed extracts.",
    "They tended to see in it a lesson about unity, and they passed over whatever did not fit.",
    "Modern research has been more interested in ordinary participants than in leaders.",
    "Account books, wills and court rolls have corrected many details of the older version.",
    "Even so, large gaps remain, above all for the months in which nobody had leisure to write.",
    "Several collections were lost to damp and neglect before anyone thought of copying them.",
    "There is still no agreement about how far the outcome was planned by anyone.",
    "What seems certain is that none of the three parties obtained all that it had hoped for.",
)
COUNTRY = (
    "The country around {place} was a patchwork of small farms, common pasture and old woods.",
    "Its soil was heavy, its lanes were deep, and a cart could lose half a day to one bad hill.",
    "{a} and {b} lay within a day of each other and had quarreled for as long as anyone could say.",
    "{c} stood a little apart, nearer to the hills, and was thought to be proud of it.",
    "Most people lived by what they could grow, weave or carry, and few had savings of any kind.",
    "News traveled with peddlers and drovers, so a rumor could outrun a letter by several days.",
    "Coin of a dozen mints passed from hand to hand, and every market kept its own scales.",
    "Old families counted for much, yet a clever stranger could rise within a few years.",
    "Courts met four times a year, and between sessions custom had to do the work of law.",
    "In such a setting even a modest disturbance could reach a long way, as {event} would show.",
)
MEMORY = (
    "For a generation {event} was a living memory, and witnesses could be found in every parish.",
    "They did not always agree, but they tended to recall the same places and the same few names.",
    "Songs and sayings kept some details alive that no official paper had thought worth recording.",
    "After that the subject faded, until a quarrel over land brought the papers back into court.",
    "Since then it has been taught to children, carved on a stone and argued over in the press.",
    "Each side has kept its own relics, a key here and a torn page there, and shows them gladly.",
    "Where the evidence is thin, invention has filled the gaps, sometimes with great skill.",
    "A yearly walk along the old roads, begun in a spirit of reconciliation, still draws a crowd.",
)
