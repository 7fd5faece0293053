// Events of the server, shared by all tabs: a browser opens six connections to a server at most, so that one tab holds
// the stream and tells the others. Otherwise a search would wait for a connection from the sixth tab on.

const NAME = "bunko-events"; // of the lock and of the channel
const ADDRESS = "/api/v1/events";
const TYPES = ["job", "generation"];
const RETRY_MILLISECONDS = 5000;

/** @typedef {(data: any) => void} Listener */

/** @type {Map<string, Set<Listener>>} */
const listeners = new Map();
/** @type {BroadcastChannel | null} */
let channel = null;

/**
 * Call a listener for each event of a type: `job`, `generation`, `open` when the stream begins, also again after a
 * break, in which events may have been missed, or `break` while it cannot be opened. Return a function that ends this.
 * @param {string} type
 * @param {Listener} listener
 * @returns {() => void}
 */
export function listen(type, listener) {
  const those = listeners.get(type) ?? new Set();
  listeners.set(type, those.add(listener));
  if (!channel) begin();
  return () => those.delete(listener);
}

function begin() {
  channel = new BroadcastChannel(NAME);
  channel.onmessage = ({ data }) => tell(data.type, data.data);
  // Only pages of this machine or with https have locks; others hold a stream each.
  if (navigator.locks) void navigator.locks.request(NAME, () => new Promise(openStream));
  else openStream();
}

function openStream() {
  const stream = new EventSource(ADDRESS);
  stream.onopen = () => tellAll("open", null);
  stream.onerror = () => {
    tellAll("break", null);
    // The browser itself tries again, except if the server has refused it.
    if (stream.readyState === EventSource.CLOSED) setTimeout(openStream, RETRY_MILLISECONDS);
  };
  for (const type of TYPES) {
    stream.addEventListener(type, (event) => tellAll(type, JSON.parse(/** @type {MessageEvent} */ (event).data)));
  }
}

/**
 * @param {string} type
 * @param {unknown} data
 */
function tellAll(type, data) {
  if (navigator.locks) channel?.postMessage({ type, data });
  tell(type, data);
}

/**
 * @param {string} type
 * @param {unknown} data
 */
function tell(type, data) {
  for (const listener of listeners.get(type) ?? []) listener(data);
}
