import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { jittered } from '../../lib/jitter.js';
import { pause } from '../../lib/pause.js';

/** The pause between two calls during an outage, as a share of the usual interval. */
const AWAY_SHARE = 0.4;

/** After a pause of the process the first failures mean little. */
const FAILURES = 3;

/** One cheap call, which rejects if there is no answer. */
export type Call = (timeoutMs: number) => Promise<unknown>;

export class ControlPlaneReach {
  readonly #parts: readonly Part[];

  /** `calls` by the name of the service, every `everyMs`, which is also the timeout of each. */
  constructor(calls: Readonly<Record<string, Call>>, everyMs: number, log: Logger) {
    this.#parts = Object.entries(calls).map(([name, call]) => new Part(name, call, everyMs, log));
  }

  async watch(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.watch(signal)));
  }

  /** Milliseconds of the longest current outage; 0 if all services answer. */
  get awayForMs(): number {
    return Math.max(...this.#parts.map(({ awayForMs }) => awayForMs));
  }
}

class Part {
  /** Start of the last answered call, by the monotonic clock. */
  #reachedAt = performance.now();
  #failures = 0;
  readonly #name: string;
  readonly #call: Call;
  readonly #everyMs: number;
  readonly #log: Logger;

  constructor(name: string, call: Call, everyMs: number, log: Logger) {
    this.#name = name;
    this.#call = call;
    this.#everyMs = everyMs;
    this.#log = log;
  }

  get awayForMs(): number {
    return this.#failures < FAILURES ? 0 : performance.now() - this.#reachedAt;
  }

  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const isThere = await this.#probe(signal);
      await pause(jittered(isThere ? this.#everyMs : this.#everyMs * AWAY_SHARE), signal);
    }
  }

  async #probe(signal: AbortSignal): Promise<boolean> {
    const began = performance.now();
    const over = new AbortController();
    try {
      await Promise.race([
        this.#call(this.#everyMs),
        delay(this.#everyMs, undefined, { signal: AbortSignal.any([signal, over.signal]) }).then(
          () => {
            throw new Error(`no answer in ${this.#everyMs} ms`);
          },
        ),
      ]);
    } catch (error) {
      if (!signal.aborted && ++this.#failures === FAILURES) {
        this.#log.warn({ err: error }, `${this.#name} is unreachable`);
      }
      return false;
    } finally {
      over.abort();
    }
    if (this.#failures >= FAILURES) this.#log.info(`${this.#name} is reachable again`);
    this.#reachedAt = began;
    this.#failures = 0;
    return true;
  }
}
