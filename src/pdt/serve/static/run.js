// One run: its events become columns, barriers and numbers; its buttons become requests.
import { act, follow, plan, show } from "./api.js";
import { cells, Columns, labelOf, readersOf } from "./columns.js";
import { Hand } from "./hand.js";
import { Found, Source } from "./sentences.js";

const run = document.getElementById("run");
const id = run.dataset.id;
const $ = (name) => document.getElementById(name);
const source = new Source($("source"));
const found = new Found($("found"), source);
const codes = Number(run.dataset.codes);
const columns = new Columns($("lanes"), {
  codes,
  onSentence: (sentence) => found.show(sentence),
  onNode: (lane, node) => handOn({ kind: "drop-node", lane, node }),
  onNodeLit: (said) => source.light((said?.sentences ?? []).flatMap((one) => source.holding(one.text))),
});
const state = { status: run.dataset.status, rounds: 0, tokens: 0, drafts: 0, blocks: 0, seen: [], valid: null, words: null, edits: [] };
const hand = new Hand($("hand"), (what, lane) =>
  what === "lane"
    ? Array.from({ length: Number(run.dataset.lanes) }, (_, index) => [index, `lane ${index}`])
    : (state.valid?.[lane] ?? []).map((node) => {
        const said = labelOf(node, state.words?.[lane]?.find((one) => one.node === node));
        return [node, said === `node ${node}` ? said : `${node}: ${said}`];
      }),
);

const ENDED = ["done", "cancelled", "failed"];

function trouble(text) {
  $("trouble").textContent = text ?? "";
  $("trouble").hidden = !text;
}

async function tried(work) {
  try {
    await work();
  } catch (error) {
    trouble(error.message);
  }
}

function stand(status, detail, block) {
  state.status = status;
  $("status").dataset.status = status;
  $("status").textContent = detail || (status === "paused" ? `paused before block ${block}` : status);
  const ended = ENDED.includes(status);
  const paused = status === "paused";
  if (paused) state.seen = [];
  $("pause").hidden = ended || paused;
  $("resume").hidden = $("step").hidden = !paused;
  $("edit").hidden = $("stop").hidden = ended;
  $("exports").hidden = $("replay").hidden = !(ended && status !== "failed");
  $("again").hidden = !ended;
  document.title = `${$("status").textContent} · ${document.title.split(" · ").slice(-2).join(" · ")}`;
}

let counting = false;
function count() {
  if (counting) return;
  counting = true;
  requestAnimationFrame(() => {
    counting = false;
    $("rounds").textContent = state.rounds;
    $("tokens").textContent = state.tokens;
    $("drafts").textContent = state.drafts;
    $("draftchip").hidden = !state.drafts;
    if (!ENDED.includes(state.status)) speed();
  });
}

// Tokens a second of the last two seconds: a wait at a barrier before, or what a reload brought at
// once, is no part of it.
function speed() {
  const now = performance.now();
  state.seen.push([now, state.tokens]);
  while (now - state.seen[0][0] > 2000) state.seen.shift();
  const [since, tokens] = state.seen[0];
  if (now - since > 300) $("speed").textContent = ((1000 * (state.tokens - tokens)) / (now - since)).toFixed(0);
}

function barrier(event) {
  state.blocks = event.block + 1;
  $("notes").hidden = false;
  $("nobarrier").hidden = true;
  const row = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = event.block;
  row.append(head);
  for (let lane = 0; lane < Number(run.dataset.lanes); lane++) {
    const cell = document.createElement("td");
    cell.dataset.of = `lane ${lane}`;
    const note = event.notes.find((one) => one.lane === lane);
    if (note) {
      const readers = readersOf(event.may_read, lane);
      columns.note(note, readers);
      const box = document.createElement("button");
      box.type = "button";
      box.className = "cells quiet";
      box.title = "Change this note, or take it away";
      box.setAttribute("aria-label", `Note of lane ${lane}, block ${event.block}: ${note.codes.join(" ")}`);
      box.append(...cells(note.codes, codes));
      box.addEventListener("click", () => handOn({ kind: "mutate-code", lane, block: event.block }));
      const said = document.createElement("span");
      said.className = "readers dim small";
      said.textContent = readers.length ? `→ ${readers.join(", ")}` : "→ nobody";
      cell.append(box, said);
    } else {
      cell.className = "dim";
      cell.textContent = "–";
    }
    row.append(cell);
  }
  const actions = document.createElement("td");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet small";
  button.textContent = "Branch…";
  button.setAttribute("aria-label", `Branch after block ${event.block}`);
  button.addEventListener("click", () => branch(event.block + 1));
  actions.append(button);
  row.append(actions);
  $("notes").tBodies[0].append(row);
}

function branch(block, preset) {
  hand.open({
    title: block ? `Branch before block ${block}` : "Branch from the start",
    where: block
      ? "A new run that is this one up to the barrier, and then goes on under the edit."
      : "A new run with the same plans and seed, under the edit from its first token on.",
    button: "Branch",
    blocks: block,
    preset,
    work: async (text) => {
      const made = await act(id, "branch", { block, interventions: [text] });
      location.href = `/beside/${id}/${made.id}`;
    },
  });
}

function edit(preset) {
  const paused = state.status === "paused";
  hand.open({
    title: "Put a hand in",
    where: paused ? `It waits before block ${state.blocks}; the edit is in force from there on.` : "The edit goes in at the next barrier.",
    button: "Put it in",
    blocks: state.blocks,
    preset,
    work: async (text) => {
      await act(id, "interventions", { interventions: [text] });
    },
  });
}

// A node or a note was chosen: edit this run while it writes, branch from it afterwards.
function handOn(preset) {
  if (!ENDED.includes(state.status)) edit(preset);
  else branch(preset.block === undefined ? 0 : preset.block + 1, preset);
}

function ledger(done) {
  const cost = done.ledger;
  const lengths = cost.lane_lengths[0];
  const notes = $("notes").querySelectorAll("tbody .cells").length;
  const spent = (...parts) => parts.reduce((sum, part) => sum + (cost.seconds[part] ?? 0), 0);
  const [reading, writing] = [spent("prefill", "plan"), spent("decode", "sample", "barrier")];
  const waits = cost.seconds.total - reading - writing > 0.5 ? `; ${cost.seconds.total.toFixed(2)} s in all with waits` : "";
  const rows = [
    ["reading order", done.documents[0].lane_at_position.map((lane) => `lane ${lane}`).join(" → ")],
    ["depth", `${cost.rounds} rounds for ${cost.tokens} tokens (${lengths.join(" + ")}), span reduction ${cost.span_reductions[0].toFixed(2)}`],
    ...(state.drafts ? [["drafts", `${state.drafts} tokens were guessed rightly and cost no round of their own`]] : []),
    ["between lanes", `${notes} notes, ${notes * Number(run.dataset.bits)} bits`],
    ["arithmetic", `${(cost.weights_read_per_round / 1e6).toFixed(1)} M weights read, ${(cost.multiply_adds_per_round / 1e6).toFixed(1)} M multiply-adds a round`],
    ["memory", `shared prompt cache ${(cost.shared_cache_bytes / 1e6).toFixed(1)} MB, private ${(cost.private_cache_bytes / 1e6).toFixed(1)} MB`],
    ["time", `${reading.toFixed(2)} s reading and planning, ${writing.toFixed(2)} s writing; first token after ${Math.min(...cost.first_token_seconds[0]).toFixed(2)} s${waits}`],
  ];
  $("ledger").replaceChildren(
    ...rows.flatMap(([name, value]) => {
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      dt.textContent = name;
      dd.textContent = value;
      return [dt, dd];
    }),
  );
  $("cost").hidden = false;
  $("speed").textContent = cost.tokens_per_second.toFixed(0);
}

async function describe() {
  state.words = (await plan(id)).lanes;
  columns.plan(state.valid, state.words);
}

async function signs() {
  const found = (await show(id)).signs_out_of_range;
  if (!found?.length) return;
  $("signs").textContent = `This may be none of the texts the model can write about: ${found.join("; ")}.`;
  $("signs").hidden = false;
}

function showEdits(texts) {
  state.edits.push(...texts);
  $("edits").hidden = !state.edits.length;
  $("edits").textContent = state.edits.join(" · ");
}

function take(event) {
  switch (event.event) {
    case "status":
      stand(event.status, event.detail, event.block);
      break;
    case "plan":
      columns.place(event.lane_at_position);
      state.valid = event.valid_nodes;
      $("restart").hidden = false;
      columns.plan(state.valid, null);
      describe().catch(() => {});
      break;
    case "round":
      state.rounds = event.index + 1;
      state.tokens += event.lanes.length;
      state.drafts += event.lanes.length - new Set(event.lanes.map((taken) => taken.lane)).size;
      for (const taken of event.lanes) columns.write(taken.lane, taken.text);
      count();
      break;
    case "barrier":
      barrier(event);
      break;
    case "edited":
      showEdits(event.interventions);
      break;
    case "intervened":
      columns.place(event.lane_at_position);
      state.valid = event.valid_nodes;
      describe().catch(() => {});
      break;
    case "lane_finished":
      columns.write(event.lane, event.text);
      columns.end(event.lane, event.reason, event.tokens);
      break;
    case "done":
      ledger(event);
      signs().catch(() => {});
      break;
    case "failed":
      trouble(event.message);
      break;
  }
}

$("pause").addEventListener("click", () =>
  tried(async () => {
    await act(id, "pause");
    $("status").textContent = "pausing …";
  }),
);
$("resume").addEventListener("click", () => tried(() => act(id, "resume")));
$("step").addEventListener("click", () => tried(() => act(id, "resume?until_barrier=true")));
$("stop").addEventListener("click", () => tried(() => act(id, "cancel")));
$("edit").addEventListener("click", () => edit());
$("replay").addEventListener("click", () =>
  tried(async () => {
    const made = await act(id, "replay");
    location.href = `/beside/${id}/${made.id}`;
  }),
);
$("restart").addEventListener("click", () => branch(0));

const KEYS = { p: "pause", g: "resume", s: "step", e: "edit", x: "stop" };
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") found.show(null);
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const button = KEYS[event.key] && $(KEYS[event.key]);
  if (button && !button.hidden) button.click();
});

stand(state.status, "");
follow(id, take, trouble);
