// The empty sheet: a source, a request, and off it goes.
import { create, example, Refused, show } from "./api.js";

const form = document.getElementById("ask");
const refused = document.getElementById("refused");
const source = form.elements.source;

function say(text) {
  refused.textContent = text ?? "";
  refused.hidden = !text;
}

async function tried(button, work) {
  say(null);
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(error.message);
  } finally {
    button.disabled = false;
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  tried(form.querySelector("[type=submit]"), async () => {
    const settings = {};
    for (const name of ["max_tokens", "temperature", "seed", "drafts"]) {
      const value = form.elements[name].value;
      if (value !== "") settings[name] = Number(value);
    }
    const made = await create({
      source: source.value,
      request: form.elements.request.value,
      settings,
      pause: form.elements.pause.checked,
    });
    location.href = `/runs/${made.id}`;
  });
});

document.getElementById("example")?.addEventListener("click", (event) =>
  tried(event.currentTarget, async () => {
    const drawn = await example();
    fill(drawn.source, drawn.request, drawn.settings);
  }),
);

function fill(text, request, settings) {
  source.value = text;
  form.elements.request.value = request;
  for (const [name, value] of Object.entries(settings))
    if (form.elements[name]) form.elements[name].value = value;
  count();
}

function count() {
  const words = source.value.match(/\S+/g)?.length ?? 0;
  document.getElementById("counted").textContent = words ? `${words} words` : "\u00a0";
}
source.addEventListener("input", count);

// A page that came before the model: what it says of the model comes with the next look.
const loading = document.getElementById("loading");
async function look() {
  const answer = await fetch("/ready").catch(() => null);
  if (!answer?.ok) setTimeout(look, 1000);
  else if (source.value || form.elements.request.value) loading.hidden = true;
  else location.reload();
}
if (loading) look();

// "Ask again": a run's source, request and settings, to be changed.
const from = new URLSearchParams(location.search).get("from");
if (from)
  show(from)
    .then((run) => fill(run.source, run.request, run.settings))
    .catch((error) => say(error.message));

// Headings, paragraphs and list items of a page; it is parsed and never shown or run.
function proseOf(page) {
  const parts = new DOMParser().parseFromString(page, "text/html").querySelectorAll("h1,h2,h3,h4,h5,h6,p,li,blockquote");
  return [...parts]
    .map((part) => {
      const text = part.textContent.trim().replace(/\s+/g, " ");
      return text && /^H\d$/.test(part.tagName) ? `${"#".repeat(part.tagName[1])} ${text}` : text;
    })
    .filter(Boolean)
    .join("\n\n");
}

source.addEventListener("dragover", (event) => {
  event.preventDefault();
  source.classList.add("over");
});
source.addEventListener("dragleave", () => source.classList.remove("over"));
source.addEventListener("drop", async (event) => {
  source.classList.remove("over");
  const file = event.dataTransfer.files[0];
  if (!file) return;
  event.preventDefault();
  if (file.size > 4 << 20) return say(`${file.name} has over 4 MB; no prompt takes that much.`);
  const text = await file.text();
  if (text.includes("\u0000") || text.includes("\ufffd")) return say(`${file.name} is not a UTF-8 text.`);
  say(null);
  source.value = /\.html?$/i.test(file.name) ? proseOf(text) : text;
  count();
});
