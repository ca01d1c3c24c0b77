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

function later() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(draw);
}

// Words common to both in order stay plain; the others are marked.
function marked(a, b) {
  const key = (word) => word.trim();
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i][j] = key(a[i]) === key(b[j]) ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
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
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && key(a[i]) === key(b[j])) {
      put(left, a[i++], false);
      put(right, b[j++], false);
    } else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) put(left, a[i++], true);
    else put(right, b[j++], true);
  }
  return [left, right];
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
