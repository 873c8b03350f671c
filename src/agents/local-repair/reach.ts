import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { jittered } from '../../lib/jitter.js';
import { pause } from '../../lib/pause.js';

/** Of the time between two calls, while there is no answer. */
const AWAY_SHARE = 0.4;

/** So many calls in a row fail before it counts: a process that was paused knows nothing. */
const FAILURES = 3;

/** Makes one cheap call; rejects when nobody answers. */
export type Call = (timeoutMs: number) => Promise<unknown>;

/** Whether what supervisors need to act can be reached from here. */
export class ControlPlaneReach {
  readonly #parts: readonly Part[];

  /**
   * @param calls by the name of whom they ask.
   * @param everyMs between two calls; as long may each of them take.
   */
  constructor(calls: Readonly<Record<string, Call>>, everyMs: number, log: Logger) {
    this.#parts = Object.entries(calls).map(([name, call]) => new Part(name, call, everyMs, log));
  }

  /** Asks again and again, until the signal aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.watch(signal)));
  }

  /** For how many milliseconds one of them has not answered; 0 when all do. */
  get awayForMs(): number {
    return Math.max(...this.#parts.map(({ awayForMs }) => awayForMs));
  }
}

class Part {
  /** When the last call that was answered began, by the monotonic clock. */
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
      const isThere = await this.#ask(signal);
      await pause(jittered(isThere ? this.#everyMs : this.#everyMs * AWAY_SHARE), signal);
    }
  }

  async #ask(signal: AbortSignal): Promise<boolean> {
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
        this.#log.warn({ err: error }, `${this.#name} cannot be reached`);
      }
      return false;
    } finally {
      over.abort();
    }
    if (this.#failures >= FAILURES) this.#log.info(`${this.#name} is reached again`);
    this.#reachedAt = began;
    this.#failures = 0;
    return true;
  }
}
