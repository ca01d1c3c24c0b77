// One key a judgment. An answer is kept in the browser until the server has counted it: a lost
// connection or a reload loses nothing, and the server counts a second sending only once.
const KEPT = "pdt-audit-answer";
const BREAK_AFTER = 25 * 60 * 1000;
const WAIT = [1000, 2000, 4000, 8000];
let busy = false;

const form = () => document.getElementById("answer");
const radios = () => [...document.querySelectorAll("input[name=sentence]")];
const marked = () => radios().find((radio) => radio.checked);

function say(text) {
  const place = document.getElementById("trouble");
  if (place) { place.hidden = !text; place.textContent = text; }
}

function answer(value, radio) {
  if (!form() || busy) return;
  if (radio) radio.checked = true;
  if ((value === "yes" || value === "contradicted") && !marked()) {
    say("Mark the sentence first: press its key, or click it.");
    return;
  }
  const fields = Object.fromEntries(new FormData(form()));
  delete fields.form_token;
  if (value === "no" || value === "cannot tell") delete fields.sentence;
  send(form().getAttribute("action"), { ...fields, answer: value });
}

async function send(path, fields) {
  busy = true;
  localStorage.setItem(KEPT, JSON.stringify({ path, fields }));
  form()?.classList.add("sending");
  for (let attempt = 0; ; attempt++) {
    const token = document.querySelector("input[name=form_token]")?.value ?? "";
    let reply = null;
    try {
      reply = await fetch(path, {
        method: "POST",
        headers: { accept: "text/html" },
        body: new URLSearchParams({ ...fields, form_token: token }),
      });
    } catch { /* no connection: tried again below */ }
    if (reply && reply.status < 500) {
      if (reply.status !== 401) localStorage.removeItem(KEPT);
      busy = false;
      return show(reply);
    }
    say("No connection. Your answer is kept in this browser and is sent again.");
    await new Promise((done) => setTimeout(done, WAIT[Math.min(attempt, WAIT.length - 1)]));
  }
}

async function show(reply) {
  const next = new DOMParser().parseFromString(await reply.text(), "text/html");
  const main = next.getElementById("main");
  if (!main) { location.assign("/"); return; }
  document.getElementById("main").replaceWith(main);
  document.title = next.title;
  tired();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

function move(by) {
  const all = radios();
  if (!all.length) return;
  const place = all.indexOf(marked());
  const next = all[place < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, place + by))];
  next.checked = true;
  next.closest("label").scrollIntoView({ block: "nearest" });
}

function tired() {
  const since = Number(sessionStorage.getItem("since") ?? 0);
  const place = document.getElementById("tired");
  if (!place || !since) sessionStorage.setItem("since", String(Date.now()));
  else place.hidden = Date.now() - since < BREAK_AFTER;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const typing = event.target.matches?.("input:not([type=radio]), textarea, select");
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    if (event.target.id === "remark" && event.key === "Enter") { event.preventDefault(); event.target.blur(); }
    return;
  }
  if (!form()) return;
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1];
  const key = digit ?? event.key.toLowerCase();
  const sentence = key.length === 1 ? radios().find((radio) => radio.dataset.key === key) : undefined;
  const onControl = event.target.closest?.("a, button, summary");
  if (sentence) answer(event.shiftKey ? "contradicted" : "yes", sentence);
  else if (key === "n") answer("no");
  else if (key === "x") answer("cannot tell");
  else if (key === "arrowdown") move(1);
  else if (key === "arrowup") move(-1);
  else if (key === "enter" && !onControl) answer(event.shiftKey ? "contradicted" : "yes");
  else if (key === "u") document.getElementById("undo")?.requestSubmit();
  else if (key === "r") document.getElementById("remark")?.focus();
  else if (key === "b") document.getElementById("break")?.click();
  else if (key === "g") document.getElementById("guide")?.click();
  else return;
  event.preventDefault();
});

document.addEventListener("submit", (event) => {
  if (event.target.id === "answer") {
    event.preventDefault();
    answer(event.submitter?.value ?? "");
  } else if (event.target.id === "undo") {
    event.preventDefault();
    const { ticket } = Object.fromEntries(new FormData(event.target));
    if (!busy) send(event.target.getAttribute("action"), { ticket });
  }
});

document.addEventListener("click", (event) => {
  if (event.target.closest?.("#break, #back")) sessionStorage.removeItem("since");
});

const kept = localStorage.getItem(KEPT);
if (kept && form()) {
  const { path, fields } = JSON.parse(kept);
  if (path === form().getAttribute("action")) send(path, fields);
  else localStorage.removeItem(KEPT);
}
tired();
