"""Every rule of §4.2 on text: each failure is a value, and all of them are returned at once.

The rules that need tokens (lengths, the one-block delay) are in `pdt.records.checks`.
"""

from pdt.config import ContractLimits
from pdt.teacher.checks.bundle import check_bundle
from pdt.teacher.checks.dependencies import check_dependencies
from pdt.teacher.checks.facts import check_facts
from pdt.teacher.checks.plans import check_plans
from pdt.teacher.checks.roles import check_roles
from pdt.teacher.checks.rules import BUNDLE_RULES, REPLY_RULES, RULES, CheckFailure, Failures, Rule
from pdt.teacher.document import TaughtDocument

__all__ = [
    "BUNDLE_RULES",
    "REPLY_RULES",
    "RULES",
    "CheckFailure",
    "Failures",
    "Rule",
    "check_bundle",
    "check_facts",
    "check_text",
]


def check_text(document: TaughtDocument, limits: ContractLimits, *, lanes: int) -> Failures:
    """What is wrong with the document's text, in the order facts, plans, roles, dependencies."""
    found = Failures(document.record_id)
    check_facts(document.article, document.inventory, limits, found)
    check_plans(document, limits, found, lanes=lanes)
    check_roles(document, found)
    check_dependencies(document, found)
    return found
