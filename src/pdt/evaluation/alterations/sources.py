"""Sources with something in them that the request does not ask for, or in another order."""

from dataclasses import dataclass

from pdt.evaluation.alterations.alteration import draws, with_sections
from pdt.sources.article import ArticleSection, Paragraph
from pdt.teacher.document import TaughtDocument

IRRELEVANT = (
    "Bread keeps longest in a dry box. A slice that has gone hard is still good in soup, and "
    "some people like it better that way.",
    "The moon moves the sea twice a day. Small boats wait for the water to come back before "
    "they leave the harbor.",
    "A cat sleeps for most of the day. It wakes at dusk, when mice begin to move about in the "
    "grass.",
    "Wool is washed before it is spun. The water must be warm, and the soap must be rinsed out "
    "with care.",
    "Bees find their way home by the sun. On cloudy days they stay near the hive and wait.",
    "An old oak drops its leaves late. In some winters a few of them hang on until spring.",
    "Chess is played on a board of sixty-four squares. The queen is the strongest piece, and a "
    "careless player loses it early.",
    "Apples picked in the rain do not keep. They are pressed at once, and the juice is drunk the "
    "same week.",
)
ADDED = 2


@dataclass(frozen=True)
class AddIrrelevant:
    """Two paragraphs about something else stand among the article's own."""

    def apply(self, document: TaughtDocument, other: TaughtDocument) -> TaughtDocument | None:
        draw = draws(document, "irrelevant")
        sections = list(document.article.sections)
        for number, text in enumerate(draw.sample(IRRELEVANT, ADDED)):
            index = draw.randrange(len(sections))
            paragraphs = list(sections[index].paragraphs)
            strange = Paragraph(id=f"irrelevant-{number}", text=text)
            paragraphs.insert(draw.randrange(len(paragraphs) + 1), strange)
            sections[index] = sections[index].model_copy(update={"paragraphs": tuple(paragraphs)})
        return with_sections(document, sections)


@dataclass(frozen=True)
class AddSecondDocument:
    """The article of another document, facts and all, follows; the request is about the first."""

    def apply(self, document: TaughtDocument, other: TaughtDocument) -> TaughtDocument | None:
        if other.article.title == document.article.title:
            return None
        title = other.article.title
        second = [
            ArticleSection(
                path=(title, *section.path),
                paragraphs=tuple(
                    Paragraph(id=f"second-{paragraph.id}", text=paragraph.text)
                    for paragraph in section.paragraphs
                ),
            )
            for section in other.article.sections
        ]
        if not second or second[0].path != (title,):
            second.insert(0, ArticleSection(path=(title,)))
        return with_sections(document, [*document.article.sections, *second])


@dataclass(frozen=True)
class ShuffleParagraphs:
    """Sections in another order, each with its heading; paragraphs in another order inside each."""

    def apply(self, document: TaughtDocument, other: TaughtDocument) -> TaughtDocument | None:
        draw = draws(document, "shuffle")
        lead = [section for section in document.article.sections if not section.path]
        headed: dict[str, list[ArticleSection]] = {}
        for section in document.article.sections:
            if section.path:
                headed.setdefault(section.path[0], []).append(section)
        groups = list(headed.values())
        draw.shuffle(groups)

        def shuffled(section: ArticleSection) -> ArticleSection:
            paragraphs = draw.sample(section.paragraphs, len(section.paragraphs))
            return section.model_copy(update={"paragraphs": tuple(paragraphs)})

        return with_sections(
            document, [*lead, *(shuffled(section) for group in groups for section in group)]
        )
