// Times of the server, as the reader's clock has them.
for (const time of document.querySelectorAll("time[data-at]")) {
  const at = new Date(1000 * Number(time.dataset.at));
  const today = at.toDateString() === new Date().toDateString();
  time.dateTime = at.toISOString();
  time.textContent = at.toLocaleString([], { dateStyle: today ? undefined : "medium", timeStyle: "short" });
}
