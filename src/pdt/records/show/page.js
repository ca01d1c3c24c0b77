"use strict";
// Two conveniences; the page reads without them: a fact lights up everywhere, and dependencies get arrows.
const board = document.querySelector(".board");
const marksOf = (kind, name) =>
  [...document.querySelectorAll("[data-" + kind + "]")].filter((e) => e.dataset[kind].split(" ").includes(name));

document.addEventListener("mouseover", (event) => {
  document.querySelectorAll(".lit").forEach((e) => e.classList.remove("lit"));
  const on = event.target.closest("[data-fact]");
  if (on) on.dataset.fact.split(" ").forEach((f) => marksOf("fact", f).forEach((e) => e.classList.add("lit")));
});

function draw() {
  const old = board.querySelector("svg.arrows");
  if (old) old.remove();
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "arrows");
  const make = (tag, attributes) => {
    const node = document.createElementNS(svg.namespaceURI, tag);
    Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
    return node;
  };
  const defs = make("defs", {});
  const head = make("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
  head.append(make("path", { d: "M0 0 L8 4 L0 8 z", style: "fill: var(--ink); stroke: none; opacity: 1" }));
  defs.append(head);
  svg.append(defs);
  const origin = board.getBoundingClientRect();
  document.querySelectorAll("[data-arrow]").forEach((row) => {
    const name = row.dataset.arrow;
    const from = marksOf("sends", name).at(-1), to = marksOf("receives", name)[0];
    if (!from || !to) return;
    const a = [...from.getClientRects()].at(-1), b = to.getClientRects()[0];
    const right = b.left >= a.right;
    const x1 = (right ? a.right : a.left) - origin.left, y1 = a.top + a.height / 2 - origin.top;
    const x2 = (right ? b.left - 3 : b.right + 3) - origin.left, y2 = b.top + b.height / 2 - origin.top;
    const bend = Math.max(40, Math.abs(x2 - x1) / 2) * (right ? 1 : -1);
    svg.append(make("path", { d: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, "marker-end": "url(#head)" }));
    const label = make("text", { x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 5, "text-anchor": "middle" });
    label.textContent = row.dataset.label;
    svg.append(label);
  });
  board.append(svg);
}
draw();
addEventListener("resize", draw);
addEventListener("load", draw);
