"""Label Studio: tasks as its JSON, votes from its JSON export, and the labelling configuration.

The sentences are shown as numbered lines. The mark is a number field: Label Studio's own text
regions count characters, which differ between its versions.
"""

import json
from typing import Any
from xml.sax.saxutils import quoteattr

from pdt.audit.answers import Answer
from pdt.audit.formats.tasks import Answered, Task
from pdt.errors import UsageError

ANSWER, SENTENCE, REMARK = "answer", "sentence", "remark"


def configuration() -> str:
    """What goes into Label Studio's labelling setup."""
    choices = "".join(f"<Choice value={quoteattr(answer)}/>" for answer in Answer)
    return f"""<View>
  <Header value="Is this claim stated by the text?"/>
  <Text name="claim" value="$claim"/>
  <Text name="text" value="$text"/>
  <Choices name="{ANSWER}" toName="claim" choice="single" required="true">{choices}</Choices>
  <Header value="For yes and contradicted: the number of the sentence"/>
  <Number name="{SENTENCE}" toName="claim" min="1"/>
  <TextArea name="{REMARK}" toName="claim" maxSubmissions="1"/>
</View>
"""


def write_tasks(tasks: list[Task]) -> str:
    rows = [
        {"data": {"id": task.id, "claim": task.claim, "text": _numbered(task)}} for task in tasks
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def read_votes(text: str, where: str) -> list[Answered]:
    """From `Export → JSON`: one completed annotation a task; tasks without one are skipped."""
    try:
        rows = json.loads(text)
        if not isinstance(rows, list):
            raise TypeError("it is not a list")
        found = [vote for row in rows for vote in _votes(row)]
    except (json.JSONDecodeError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise UsageError(
            f"{where} is not a JSON export of Label Studio: {error!r}.\n"
            "Choose Export, then JSON (not JSON-MIN)."
        ) from error
    return found


def _votes(row: dict[str, Any]) -> list[Answered]:
    done = [one for one in row["annotations"] if not one.get("was_cancelled")]
    if len(done) > 1:
        raise UsageError(
            f"The task {row['data']['id']} has {len(done)} annotations.\n"
            "Export one annotator's alone."
        )
    votes = []
    for one in done:
        values = {result["from_name"]: result["value"] for result in one["result"]}
        mark = values.get(SENTENCE, {}).get("number")
        remark = values.get(REMARK, {}).get("text", [])
        votes.append(
            Answered(
                id=row["data"]["id"],
                answer=values[ANSWER]["choices"][0],
                sentence=None if mark is None else int(mark),
                remark=remark if isinstance(remark, str) else " ".join(remark),
                seconds=one.get("lead_time"),
            )
        )
    return votes


def _numbered(task: Task) -> str:
    number, parts = 0, []
    for paragraph in task.paragraphs:
        lines = []
        for sentence in paragraph:
            number += 1
            lines.append(f"[{number}] {sentence}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
