// Two runs lane by lane, with what differs marked in both.
import { follow, show } from "./api.js";

const root = document.getElementById("beside");
const trouble = document.getElementById("trouble");
const sides = ["left", "right"];
const texts = { left: [], right: [] };
let drawing = false;

const of = (selector, side) => root.querySelector(`${selector}[data-of="${side}"]`);

function say(text) {
  trouble.textContent = text ?? "";
  trouble.hidden = !text;
}

function draw() {
  drawing = false;
  for (const lane of root.querySelectorAll(".lane")) {
    const index = Number(lane.dataset.lane);
    const [a, b] = sides.map((side) => (texts[side][index] ?? "").match(/\S+\s*/g) ?? []);
    const [left, right] = marked(a, b);
    of(`.lane[data-lane="${index}"] .text`, "left").replaceChildren(...left);
    of(`.lane[data-lane="${index}"] .text`, "right").replaceChildren(...right);
    const same = a.length && a.join("").trim() === b.join("").trim();
    lane.querySelector(".same").textContent = same ? "the same" : "";
  }
}

// Comparing costs more the longer the texts are, so it is done a few times a second.
function later() {
  if (drawing) return;
  drawing = true;
  setTimeout(() => requestAnimationFrame(draw), 150);
}

// Words common to both in order stay plain; the others are marked. What both begin and end with is
// set apart first: two runs that branched late have little between.
function marked(a, b) {
  const key = (word) => word.trim();
  let [head, tail] = [0, 0];
  while (head < a.length && head < b.length && key(a[head]) === key(b[head])) head++;
  while (tail < a.length - head && tail < b.length - head && key(a.at(-1 - tail)) === key(b.at(-1 - tail))) tail++;
  const [left, right] = [[], []];
  const put = (list, word, differs) => {
    const last = list.at(-1);
    if (last && (last.tagName === "MARK") === differs) last.textContent += word;
    else {
      const part = document.createElement(differs ? "mark" : "span");
      part.textContent = word;
      list.push(part);
    }
  };
  const same = (words, list, from, to) => words.slice(from, to).forEach((word) => put(list, word, false));
  same(a, left, 0, head);
  same(b, right, 0, head);
  for (const [side, word, differs] of between(a.slice(head, a.length - tail), b.slice(head, b.length - tail), key))
    put(side ? right : left, word, differs);
  same(a, left, a.length - tail, a.length);
  same(b, right, b.length - tail, b.length);
  return [left.flatMap(trimmed), right.flatMap(trimmed)];
}

// White space behind the last word of a mark is not marked.
function trimmed(part) {
  if (part.tagName !== "MARK") return [part];
  const space = part.textContent.slice(part.textContent.trimEnd().length);
  part.textContent = part.textContent.trimEnd();
  return [part, document.createTextNode(space)];
}

// The longest common run of words, by the usual table.
function* between(a, b, key) {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i][j] = key(a[i]) === key(b[j]) ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && key(a[i]) === key(b[j])) {
      yield [0, a[i++], false];
      yield [1, b[j++], false];
    } else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) yield [0, a[i++], true];
    else yield [1, b[j++], true];
  }
}

// Of a replay: whether it is what it replays, token for token and note for note.
async function verdict() {
  const { replay_of: replay } = await show(root.dataset.right);
  if (!replay) return;
  const box = document.getElementById("verdict");
  box.classList.toggle("bad", replay.differences?.length > 0);
  box.textContent = !replay.differences
    ? "The replay did not come to its end."
    : replay.differences.length
      ? `The replay differs: ${replay.differences.join("; ")}.`
      : "The replay is the same: every token, every note and every plan node.";
  box.hidden = false;
}

for (const side of sides) {
  const id = root.dataset[side];
  const edits = [];
  const told = () => (of(".edits", side).textContent = edits.join(" · "));
  show(id)
    .then((run) => {
      edits.push(...run.interventions);
      told();
    })
    .catch((error) => say(error.message));
  follow(
    id,
    (event) => {
      if (event.event === "status") {
        of(".status", side).textContent = event.status;
        of(".status", side).dataset.status = event.status;
        if (side === "right" && ["done", "cancelled", "failed"].includes(event.status)) verdict().catch((error) => say(error.message));
      } else if (event.event === "round") {
        for (const taken of event.lanes) texts[side][taken.lane] = (texts[side][taken.lane] ?? "") + taken.text;
        later();
      } else if (event.event === "lane_finished") {
        texts[side][event.lane] = (texts[side][event.lane] ?? "") + event.text;
        later();
      }
    },
    say,
  );
}
