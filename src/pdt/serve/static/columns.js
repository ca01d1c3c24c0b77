import { sentences } from "./sentences.js";

// The lanes' columns. What comes in is kept, and written into the page once a frame.
const ENDS = { eos: "ended by itself", stop: "ended at a stop", length: "reached its length", interrupted: "interrupted" };

export class Columns {
  // `onSentence`: one is under the pointer or in focus, or none is. `onNode`: one was chosen or pointed at.
  constructor(root, { codes, onSentence, onNode, onNodeLit }) {
    this.root = root;
    this.codes = codes;
    this.lanes = [...root.querySelectorAll(".lane")].map((element) => ({
      element,
      text: element.querySelector(".text"),
      pending: "",
      sentence: null,
    }));
    this.onNode = onNode;
    this.onNodeLit = onNodeLit;
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

  // In reading order for the eye, the keyboard and a screen reader alike.
  place(order) {
    order.forEach((lane, position) => {
      const { element } = this.lanes[lane];
      element.querySelector(".place").textContent = `section ${position + 1} of ${order.length}`;
      this.root.append(element);
    });
  }

  plan(valid, described) {
    valid.forEach((nodes, index) => {
      const list = this.lanes[index].element.querySelector(".nodes");
      list.replaceChildren(...nodes.map((node) => this.node(index, node, described?.[index]?.find((one) => one.node === node))));
      this.current(index);
    });
  }

  node(lane, node, said) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    item.dataset.node = node;
    button.type = "button";
    button.textContent = labelOf(node, said);
    button.title = said?.sentences?.length
      ? `Node ${node} points at: ${said.sentences.map((one) => one.text).join(" … ")}`
      : said?.words?.length
        ? `Node ${node}; nearest words: ${said.words.map((one) => `${one.word} ${one.cosine}`).join(", ")}`
        : `Node ${node}: a vector, near nothing in the source`;
    button.addEventListener("click", () => this.onNode(lane, node));
    for (const [on, lit] of [["mouseenter", said], ["focus", said], ["mouseleave", null], ["blur", null]])
      button.addEventListener(on, () => this.onNodeLit(lit));
    item.append(button);
    return item;
  }

  current(index) {
    const { element, node } = this.lanes[index];
    for (const item of element.querySelectorAll(".nodes li")) {
      if (Number(item.dataset.node) === node) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    }
  }

  note(note, readers) {
    const { element } = this.lanes[note.lane];
    this.lanes[note.lane].node = note.plan_node;
    this.current(note.lane);
    element.querySelector(".cells").replaceChildren(...cells(note.codes, this.codes));
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

// What a plan node is about, in few words.
export function labelOf(node, said) {
  const first = said?.sentences?.[0]?.text;
  if (first) return first.length > 34 ? `${first.slice(0, first.lastIndexOf(" ", 32))} …` : first;
  return said?.words?.map((one) => one.word).join(", ") || `node ${node}`;
}

// A code is shown by its number and by how dark its cell is: equal codes look equal.
export function cells(note, codes) {
  return note.map((code) => {
    const cell = document.createElement("span");
    cell.className = `cell tone-${Math.floor((8 * code) / codes)}`;
    cell.textContent = code;
    return cell;
  });
}

export function readersOf(mayRead, producer) {
  return mayRead.flatMap((row, reader) => (row[producer] && reader !== producer ? [reader] : []));
}
