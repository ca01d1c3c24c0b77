// The lanes' own interface, from a page: requests, and a stream that comes back after a cut.
const ROOT = "/v1/pdt/generations";

export class Refused extends Error {}

async function ask(method, path, body) {
  const options = { method };
  if (body !== undefined) {
    options.headers = { "content-type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Refused("The server cannot be reached. Is it still running?");
  }
  const text = await answer.text();
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    throw new Refused(`The server answered ${answer.status} and no JSON.`);
  }
  if (!answer.ok) throw new Refused(said.error?.message ?? `The server answered ${answer.status}.`);
  return said;
}

export const create = (body) => ask("POST", ROOT, body);
export const show = (id) => ask("GET", `${ROOT}/${id}`);
export const plan = (id) => ask("GET", `${ROOT}/${id}/plan`);
export const act = (id, verb, body) => ask("POST", `${ROOT}/${id}/${verb}`, body ?? {});
export const example = () => ask("GET", "/studio/example");

// Every event once and in order. A cut connection is taken up again where it was.
export async function follow(id, take, onTrouble) {
  let after = 0;
  let wait = 500;
  for (;;) {
    try {
      const answer = await fetch(`${ROOT}/${id}/events?after=${after}`);
      if (answer.status === 404) throw new Refused("This run has been forgotten by the server.");
      if (!answer.ok) throw new Error(String(answer.status));
      onTrouble(null);
      wait = 500;
      for await (const event of events(answer.body)) {
        if (event.ended) return;
        after = event.n + 1;
        take(event);
      }
    } catch (error) {
      if (error instanceof Refused) {
        onTrouble(error.message);
        return;
      }
    }
    onTrouble("The connection was cut. Trying again …");
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, 8000);
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}
