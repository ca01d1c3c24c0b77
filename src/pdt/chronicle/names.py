"""The fixed pools that names are composed from.

Common words on purpose: in the tokenizers of Llama and Qwen almost every entry is one token, a
place is two. A person is one of 4,096, a place one of 128: far more than a model can guess.

Names of parts are for the dial `names`: a stem and an end, each a piece of its own, so that there
are names which no training text has and whose pieces every model knows.
"""

from dataclasses import dataclass

from pdt.chronicle.dice import share

GIVEN = tuple(
    """
    Adam Albert Alice Andrea Anna Anton Arthur Barbara Betty Bruno Carl Caroline Catherine Charlotte
    Clara Daniel David Edmund Elizabeth Ellen Emil Emma Eric Felix Frances Frederick Gabriel Georg
    Hans Harold Helen Henry Hugo Isaac Isabel Jacob Jane Johan Joseph Julia Karl Kate Laura Lawrence
    Leonard Lisa Louise Lucas Lucy Margaret Martin Matthew Maurice Nathan Nicholas Oliver Oscar Otto
    Paul Peter Philip Ruth Samuel Thomas
    """.split()  # noqa: SIM905
)
SURNAMES = tuple(
    """
    Adams Allen Anderson Beck Berg Braun Carter Clark Cole Collins Craig Davis Douglas Evans Fischer
    Franklin Gill Gordon Graham Harris Hoff Howard Hudson Jackson Jenkins Johnson Kelly Kennedy Kent
    Kirk Klein Koch Lewis Lind Lloyd Lund Meyer Mitchell Moore Morgan Morris Murray Nash Nelson
    Newton Perry Pitt Rand Roberts Robinson Ross Roth Russell Schmidt Shaw Stein Stern Stevens
    Stewart Taylor Thompson Wagner Watson Wilson
    """.split()  # noqa: SIM905
)
STEMS = tuple("Al Bar Bran Cold East Ed Ken Lang Mar Nor Old Ray Red Stan West Win".split())  # noqa: SIM905
ENDS = ("bridge", "dale", "field", "ford", "ham", "port", "ton", "wood")
PLACES = tuple(stem + end for stem in STEMS for end in ENDS)

BODIES = ("abbey", "chapter", "company", "council", "guild", "league", "militia", "senate")
"""What a party is. A party's name is its place and its body: the Oldham council."""

COINED = tuple(
    """
    Wolf Lion Bear Moon Apple Bird Angel Dragon Fish Silver Snow Spider Gold Cloud Fire
    Ghost Fox Phoenix Ruby Oak Ocean Planet Forest Garden Knight Dream Lamb Mouse Dog Orange
    Clay Button Thread Horn Eclipse Meteor Magic Wonder Dance Music Chair Atlas Oracle Spark
    Circle Fern Sand Boot Hook Mountain Island Lake Creek Root Eagle Hawk Swan Pearl Comet
    Mirror Willow Lily Thunder Shadow Tiger Candle Crystal Diamond Dove Raven Falcon Coral
    Maple Ivy Clover Lotus Jade Feather Sword Shield Helmet Giant Wizard Witch Fairy Monk
    Pirate Frog Whale Shark Crab Goat Rabbit Duck Goose Pony Camel Monkey Snake Cobra
    Leopard Panther Deer Moose Beaver Lemon Cherry Peach Plum Grape Berry Honey Sugar Pepper
    Ginger Basil Garlic Copper Bronze Steel Brass Marble Glass Velvet Silk Ribbon Needle
    Drum Anchor Compass Hammer Saw Knife Brush Mask Pocket Frost Fog Dawn Rainbow Lightning
    Desert Cliff Glacier Jungle Reef Wave Tide Treasure Monster Dice Chess Puppet Cookie
    Cake Jelly Butter Cheese Cream Tomato Potato Onion Mango Banana Nut Walnut Carpet
    Curtain Shade Flame Smoke Torch Lantern Lamp Emerald Spiral Triangle Leaf Flower Moss
    Pine Palm Iris Shell Violet Ivory Cedar Sailor Clown Butterfly Turtle Dolphin Elephant
    Jaguar Sleeve Canyon Meadow Puzzle Coffee Pumpkin Coconut Pillow Bottle Sapphire Throne
    Beetle Pyramid Bamboo Daisy Jasmine Coat Belt Bucket Spoon Nail Wheel Sail Cave Plate
    Fork Piano Panda Salmon Griffin Troll Magnet Hazel Birch Cypress Vanilla Cricket Gecko
    Quartz Granite Nickel Zinc Mercury Penguin Unicorn Goblin Samurai Acrobat Telescope
    Fountain Pavilion Blizzard Avalanche Peacock Sparrow Heron Thistle Tulip Otter Lilac
    Badger Flute
    """.split()  # noqa: SIM905
)
"""256 words that stand nowhere else in Chronicle: only an owner section may bring one in.

Pools of 2^h are nested, so that a curriculum that adds bits keeps the words it already knows.
"""


PLACE_STEMS = tuple(
    """
    Al Ash Bar Black Bran Brock Clay Cold Crow East Ed Elm Fair Fox Glen Green Hal Hart Hay High
    Kel Ken Lake Lang Lin Long Mar Mel Mill Moor Nor Oak Old Pem Ray Red Rock Sand Stan Stone Thorn
    Wal War West White Wil Win Wood
    """.split()  # noqa: SIM905
)
PLACE_ENDS = (
    "bridge", "burn", "bury", "combe", "dale", "field", "ford", "gate", "ham", "hurst", "ley",
    "mere", "port", "stead", "ton", "wick",
)  # fmt: skip
SURNAME_STEMS = tuple(
    """
    Ackr Bald Bram Cald Carl Dal Den Eld Far Garl Gran Hald Hol Isen Jar Kast Lam Lind Mal Mort
    Nor Ost Pal Quin Ran Sel Tal Ulm Ver Wend Yar Zell
    """.split()  # noqa: SIM905
)
SURNAME_ENDS = (
    "ander", "berg", "by", "court", "den", "er", "ing", "man", "mark", "mond", "rick", "sen",
    "son", "stein", "well", "wyn",
)  # fmt: skip
UNSEEN = 0.25
"""Share of all names of parts that only the test split has."""


def unseen_name(name: str) -> bool:
    """Is this name of parts kept from every training text?"""
    return share("name of parts", name) < UNSEEN


@dataclass(frozen=True)
class NamePool:
    """Where a corpus draws its places and surnames from."""

    places: tuple[str, ...]
    surnames: tuple[str, ...]


def _parts(stems: tuple[str, ...], ends: tuple[str, ...], *, unseen: bool) -> tuple[str, ...]:
    names = (stem + end for stem in stems for end in ends)
    return tuple(name for name in names if unseen_name(name) is unseen)


NAME_POOLS = {
    "whole": NamePool(PLACES, SURNAMES),
    "parts": NamePool(
        _parts(PLACE_STEMS, PLACE_ENDS, unseen=False),
        _parts(SURNAME_STEMS, SURNAME_ENDS, unseen=False),
    ),
    "unseen": NamePool(
        _parts(PLACE_STEMS, PLACE_ENDS, unseen=True),
        _parts(SURNAME_STEMS, SURNAME_ENDS, unseen=True),
    ),
}
"""By the dial `names`."""
