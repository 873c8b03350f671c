// The baseline for supervision: the same probes in a bare loop. A separate program: `node bare-probes.js
// <ports> <probes a second> <seconds>`, which sends its resource use to its parent.
import http from 'node:http';

/** Milliseconds between two bursts. */
const TICK_MS = 100;

const [ports = '', perSecond = '1', seconds = '1'] = process.argv.slice(2);
const targets = ports.split(',').map(Number);

export interface BareProbes {
  readonly probes: number;
  /** Seconds of one core within a window of `seconds`. */
  readonly cpu: number;
  readonly seconds: number;
  /** Memory in bytes. */
  readonly memory: number;
}

const started = performance.now();
const before = process.cpuUsage();
let sent = 0;
let answered = 0;
const timer = setInterval(() => {
  const elapsed = (performance.now() - started) / 1_000;
  while (sent < elapsed * Number(perSecond)) probe(targets[sent++ % targets.length] ?? 0);
  if (elapsed < Number(seconds)) return;
  clearInterval(timer);
  const { user, system } = process.cpuUsage(before);
  const used: BareProbes = {
    probes: answered,
    cpu: (user + system) / 1e6,
    seconds: elapsed,
    memory: process.memoryUsage.rss(),
  };
  process.send?.(used, () => process.disconnect());
}, TICK_MS);

function probe(port: number): void {
  const request = http.get(
    { host: '127.0.0.1', port, path: '/healthz', agent: false },
    (answer) => {
      answer.resume();
      answer.on('end', () => answered++);
    },
  );
  request.setTimeout(5_000, () => request.destroy());
  request.on('error', () => undefined); // failed probes are not counted
}
