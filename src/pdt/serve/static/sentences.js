// Sentences, and which one of a source is nearest to one that was written: by the words they share,
// each weighed by how few sentences of the source have it. A help for the eye, not a proof.
const BEGINS = /(?<=[.!?]["'”’)]*\s+|\n)(?=\S)/;

export const sentences = (text) => text.split(BEGINS);
const words = (text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []);
// Numbers, and names: words with a capital that do not stand first.
const values = (text) =>
  new Set([...text.matchAll(/(?<!^\s*["'“‘(]*)\p{Lu}[\p{L}\p{N}]+|\d[\d.,:]*(?<![.,:])/gu)].map(([value]) => value));

export class Source {
  constructor(element) {
    this.element = element;
    this.headings = [];
    let heading = "";
    this.parts = sentences(element.textContent).map((text, number) => {
      const span = document.createElement("span");
      span.textContent = text;
      const mark = text.match(/^(#{1,6}) (.*)/);
      if (mark) {
        heading = mark[2].trim();
        span.className = "heading";
        span.textContent = text.replace(/^#{1,6} /, "");
      }
      return { span, text, heading, isHeading: Boolean(mark), words: words(text), number };
    });
    element.replaceChildren(...this.parts.map((part) => part.span));
    this.told = this.parts.filter((part) => !part.isHeading);
    this.count = new Map();
    for (const part of this.told)
      for (const word of part.words) this.count.set(word, (this.count.get(word) ?? 0) + 1);
    this.lit = [];
  }

  // The nearest sentence, and which names and numbers of the written one it does not have.
  nearest(text) {
    const own = words(text);
    const weight = (word) => Math.log(1 + this.told.length / this.count.get(word));
    let [best, most] = [null, 0];
    for (const part of this.told) {
      let score = 0;
      for (const word of own) if (part.words.has(word)) score += weight(word);
      if (score > most) [best, most] = [part, score];
    }
    if (!best || most <= 0.35 * own.size) return null;
    const there = words(`${best.heading} ${best.text}`);
    return { part: best, shared: own, missing: [...values(text)].filter((value) => [...words(value)].some((word) => !there.has(word))) };
  }

  // Those whose text holds the words; what a plan node points at is given as it stands in the prompt.
  holding(text) {
    const plain = (one) => one.replace(/\s+/g, " ").trim();
    return this.told.filter((part) => plain(part.text) && plain(text).includes(plain(part.text)));
  }

  light(parts) {
    for (const part of this.lit) part.span.classList.remove("lit");
    this.lit = parts;
    for (const part of parts) part.span.classList.add("lit");
    const first = parts[0]?.span;
    if (first) this.element.scrollTop = first.offsetTop - this.element.offsetTop - this.element.clientHeight / 3;
  }
}

// Beside the sentence under the pointer: its source sentence, with the words that both have in bold.
export class Found {
  constructor(box, source) {
    this.box = box;
    this.source = source;
    this.where = box.querySelector("#foundwhere");
    this.text = box.querySelector("#foundtext");
    this.missing = box.querySelector("#foundmissing");
    this.at = null;
    addEventListener("scroll", () => this.place(), { passive: true });
    addEventListener("resize", () => this.place());
  }

  show(sentence) {
    this.at?.removeAttribute("aria-describedby");
    this.at = sentence;
    if (!sentence) {
      this.box.hidden = true;
      this.source.light([]);
      return;
    }
    const found = this.source.nearest(sentence.textContent);
    this.source.light(found ? [found.part] : []);
    this.where.textContent = !found ? "No sentence of the source has enough of its words." : found.part.heading ? `Source · ${found.part.heading}` : "Source";
    this.text.replaceChildren(...(found ? marked(found.part.text.trim(), found.shared) : []));
    this.missing.hidden = !found?.missing.length;
    this.missing.textContent = found ? `Not in it: ${found.missing.join(", ")}` : "";
    this.box.hidden = false;
    sentence.setAttribute("aria-describedby", this.box.id);
    this.place();
  }

  // Below the sentence, or above it where there is no room; as wide as its column.
  place() {
    if (!this.at) return;
    const column = this.at.parentElement.getBoundingClientRect();
    const at = this.at.getBoundingClientRect();
    this.box.style.width = `${column.width}px`;
    this.box.style.left = `${column.left}px`;
    const height = this.box.offsetHeight;
    const below = at.bottom + 6 + height <= innerHeight || at.top - 6 - height < 0;
    this.box.style.top = `${below ? at.bottom + 6 : at.top - 6 - height}px`;
  }
}

function marked(text, shared) {
  return text.split(/([\p{L}\p{N}]{2,})/u).map((part) => {
    if (!shared.has(part.toLowerCase())) return document.createTextNode(part);
    const bold = document.createElement("b");
    bold.textContent = part;
    return bold;
  });
}
