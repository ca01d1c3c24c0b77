// The hand: choose an edit, see it in words, put it in at a barrier or branch with it.
const KINDS = {
  "swap-plans": ["Two lanes exchange their plans", ["lane:First lane", "lane:Second lane"], (a, b) => `swap-plans:${a},${b}`],
  "drop-node": ["Drop a plan node", ["lane:Lane", "node:Node"], (l, n) => `drop-node:${l}.${n}`],
  "replace-node": ["Copy a plan node over another", ["lane:Lane", "node:Node", "lane:From lane", "node:From node"], (l, n, f, m) => `replace-node:${l}.${n}=${f}.${m}`],
  "zero-plan": ["Empty a lane's plan", ["lane:Lane"], (l) => `zero-plan:${l}`],
  "remove-notes": ["Nobody reads a lane's notes", ["lane:Lane"], (l) => `remove-notes:${l}`],
  "remove-note": ["Take one note away", ["lane:Lane", "block:Block"], (l, b) => `remove-note:${l}@${b}`],
  "mutate-code": ["Change one note", ["lane:Lane", "block:Block"], (l, b) => `mutate-code:${l}@${b}`],
  "block-reader": ["A lane reads no notes", ["lane:Lane"], (l) => `block-reader:${l}`],
  "scramble-notes": ["All notes point elsewhere", [], () => "scramble-notes"],
  "close-gate": ["Close the note gate", [], () => "close-gate"],
};

export class Hand {
  // `choices(what, lane)`: the lanes, or the nodes of a lane, as [value, words].
  constructor(dialog, choices) {
    this.dialog = dialog;
    this.choices = choices;
    this.kind = dialog.querySelector("#kind");
    this.fields = dialog.querySelector("#handfields");
    this.spec = dialog.querySelector("#handspec");
    this.trouble = dialog.querySelector("#handtrouble");
    this.kind.replaceChildren(...Object.entries(KINDS).map(([name, [words]]) => new Option(words, name)));
    this.kind.addEventListener("change", () => this.choose());
    this.fields.addEventListener("change", () => this.tell());
    dialog.querySelector("#handclose").addEventListener("click", () => dialog.close());
    dialog.querySelector("#handform").addEventListener("submit", (event) => {
      event.preventDefault();
      this.done();
    });
  }

  // `work` is given the edit in words of the interface; what it throws is shown in the dialog.
  open({ title, where, button, blocks, preset = {}, work }) {
    this.dialog.querySelector("#handhead").textContent = title;
    this.dialog.querySelector("#handwhere").textContent = where;
    this.dialog.querySelector("#handdo").textContent = button;
    this.blocks = blocks;
    this.preset = preset;
    this.work = work;
    this.trouble.hidden = true;
    for (const option of this.kind.options)
      option.disabled = blocks === 0 && KINDS[option.value][1].some((f) => f.startsWith("block:"));
    this.kind.value = preset.kind ?? this.kind.value ?? "swap-plans";
    this.choose();
    this.dialog.showModal();
  }

  choose() {
    const seen = {};
    this.lane = null;
    this.fields.replaceChildren(
      ...KINDS[this.kind.value][1].map((field) => {
        const [what, label] = field.split(":");
        const select = document.createElement("select");
        select.dataset.what = what;
        this.offer(select, what);
        const nth = (seen[what] = (seen[what] ?? -1) + 1);
        const wanted = nth === 0 ? this.preset[what] : select.options[Math.min(nth, select.options.length - 1)]?.value;
        if (wanted !== undefined) select.value = wanted;
        if (what === "lane") {
          this.lane = select;
          select.addEventListener("change", () => this.offer(this.nodeAfter(select), "node", select.value));
        }
        const box = document.createElement("label");
        box.className = "field";
        box.append(label, select);
        return box;
      }),
    );
    this.tell();
  }

  // The node that is chosen from the lane that was chosen just before it.
  nodeAfter(lane) {
    const next = lane.closest("label").nextElementSibling?.querySelector("select");
    return next?.dataset.what === "node" ? next : null;
  }

  offer(select, what, lane = this.lane?.value ?? this.preset.lane ?? 0) {
    if (!select) return;
    const options = what === "block" ? Array.from({ length: this.blocks }, (_, b) => [b, `block ${b}`]) : this.choices(what, Number(lane));
    select.replaceChildren(...options.map(([value, words]) => new Option(words, value)));
  }

  text() {
    const values = [...this.fields.querySelectorAll("select")].map((select) => select.value);
    return KINDS[this.kind.value][2](...values);
  }

  tell() {
    this.spec.textContent = this.text();
  }

  async done() {
    try {
      await this.work(this.text());
      this.dialog.close();
    } catch (error) {
      this.trouble.textContent = error.message;
      this.trouble.hidden = false;
    }
  }
}
