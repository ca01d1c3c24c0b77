import { sentences } from "./sentences.js";

// The lanes' columns. What comes in is kept, and written into the page once a frame.
const ENDS = { eos: "ended by itself", stop: "ended at a stop", length: "reached its length", interrupted: "interrupted" };

export class Columns {
  constructor(root, onSentence) {
    this.lanes = [...root.querySelectorAll(".lane")].map((element) => ({
      element,
      text: element.querySelector(".text"),
      pending: "",
      sentence: null,
      all: "",
    }));
    this.onSentence = onSentence;
    this.waiting = false;
    for (const lane of this.lanes) {
      const on = (event) => {
        const sentence = event.target.closest(".sentence");
        if (sentence) onSentence(sentence);
      };
      lane.text.addEventListener("mouseover", on);
      lane.text.addEventListener("focusin", on);
      lane.text.addEventListener("mouseleave", () => onSentence(null));
      lane.text.addEventListener("focusout", () => onSentence(null));
    }
  }

  write(index, piece) {
    const lane = this.lanes[index];
    lane.pending += piece;
    lane.all += piece;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = false;
    for (const lane of this.lanes) {
      if (!lane.pending) continue;
      const begun = lane.sentence?.firstChild.data ?? "";
      const [first, ...rest] = sentences(begun + lane.pending);
      lane.pending = "";
      this.append(lane, first.slice(begun.length));
      for (const sentence of rest) {
        lane.sentence = null;
        this.append(lane, sentence);
      }
    }
  }

  append(lane, text) {
    if (!lane.sentence) {
      lane.sentence = document.createElement("span");
      lane.sentence.className = "sentence";
      lane.sentence.tabIndex = 0;
      lane.sentence.append("");
      lane.text.append(lane.sentence);
    }
    lane.sentence.firstChild.appendData(text);
  }

  place(order) {
    order.forEach((lane, position) => {
      const label = this.lanes[lane].element.querySelector(".place");
      label.textContent = `section ${position + 1} of ${order.length}`;
      this.lanes[lane].element.style.order = position;
    });
  }

  plan(valid, described) {
    valid.forEach((nodes, index) => {
      const list = this.lanes[index].element.querySelector(".nodes");
      list.replaceChildren(
        ...nodes.map((node) => {
          const item = document.createElement("li");
          item.dataset.node = node;
          item.toggleAttribute("aria-current", node === this.lanes[index].node);
          const near = described?.[index]?.find((one) => one.node === node)?.words ?? [];
          item.textContent = near.map((one) => one.word).join(", ") || `node ${node}`;
          item.title = near.length
            ? `node ${node}; nearest words: ${near.map((one) => `${one.word} ${one.cosine}`).join(", ")}`
            : `node ${node}: a vector, near no word of the source`;
          return item;
        }),
      );
    });
  }

  note(note, readers) {
    const { element } = this.lanes[note.lane];
    this.lanes[note.lane].node = note.plan_node;
    for (const item of element.querySelectorAll(".nodes li"))
      item.toggleAttribute("aria-current", Number(item.dataset.node) === note.plan_node);
    element.querySelector(".cells").replaceChildren(...cells(note.codes));
    element.querySelector(".readers").textContent = readers.length
      ? `read by ${readers.map((lane) => `lane ${lane}`).join(", ")}`
      : "read by nobody";
  }

  end(lane, reason, tokens) {
    const { element } = this.lanes[lane];
    element.querySelector(".end").textContent = `${tokens} tokens, ${ENDS[reason] ?? reason}`;
    element.classList.add("ended");
  }
}

// A code is shown by its number and by how dark its cell is: equal codes look equal.
export function cells(codes) {
  return codes.map((code) => {
    const cell = document.createElement("span");
    cell.className = `cell tone-${Math.floor(code / 32)}`;
    cell.textContent = code;
    return cell;
  });
}

export function readersOf(mayRead, producer) {
  return mayRead.flatMap((row, reader) => (row[producer] && reader !== producer ? [reader] : []));
}
