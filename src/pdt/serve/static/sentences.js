// Sentences, and which one of a source is nearest to one that was written: by the words they share,
// each weighed by how few sentences of the source have it. A help for the eye, not a proof.
const BEGINS = /(?<=[.!?]["'”’)]*\s+|\n)(?=\S)/;

export const sentences = (text) => text.split(BEGINS);
const words = (text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []);

export class Source {
  constructor(element) {
    this.parts = sentences(element.textContent).map((text) => {
      const span = document.createElement("span");
      span.textContent = text;
      return { span, words: words(text) };
    });
    element.replaceChildren(...this.parts.map((part) => part.span));
    this.count = new Map();
    for (const part of this.parts)
      for (const word of part.words) this.count.set(word, (this.count.get(word) ?? 0) + 1);
    this.lit = null;
  }

  nearest(text) {
    const asked = [...words(text)].filter((word) => this.count.has(word));
    const weight = (word) => Math.log(1 + this.parts.length / this.count.get(word));
    const all = [...words(text)].length || 1;
    let best = null;
    let most = 0;
    for (const part of this.parts) {
      const score = asked.reduce((sum, word) => sum + (part.words.has(word) ? weight(word) : 0), 0);
      if (score > most) [best, most] = [part, score];
    }
    return most > 0.35 * all ? best : null;
  }

  light(text) {
    this.lit?.classList.remove("lit");
    const found = text === null ? null : this.nearest(text);
    this.lit = found?.span ?? null;
    this.lit?.classList.add("lit");
    return found?.span.textContent.trim() ?? null;
  }
}
