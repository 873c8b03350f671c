import { cachedFor } from '../../lib/cached-for.js';
import { reasonOf } from '../../lib/reason-of.js';
import { readRelease } from '../process/release.js';

/** Milliseconds for which a report is cached. */
const KEEP_MS = 1_000;

/** Milliseconds for the result of a check. */
const ANSWER_MS = 2_000;

const MAX_REASON = 300;

/** Rejects with the reason if the checked service is unavailable; the reason contains no secret. */
export type Check = () => Promise<void> | void;

/** Result of one check; `reason` is one sentence. */
export type CheckResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** The answer of `/readyz`. */
export interface ReadinessReport {
  /** True if the process should get work. */
  readonly ready: boolean;
  readonly release: string;
  readonly checks: Readonly<Record<string, CheckResult>>;
}

/** A failed check. The message is the sentence of the report. */
export class CheckFailedError extends Error {
  override readonly name = 'CheckFailedError';
}

/** Reports whether a process should get work: it serves, and every service that it needs answers. */
export class Readiness {
  readonly #checks: Readonly<Record<string, () => Promise<void>>>;
  readonly #release: string;
  #phase: 'starts' | 'serves' | 'ends' = 'starts';

  /** Returns the report, made at most once a second. */
  readonly read = cachedFor(KEEP_MS, () => this.#report());

  constructor(checks: Readonly<Record<string, Check>>, release = readRelease()) {
    this.#release = release;
    this.#checks = Object.fromEntries(
      Object.entries({ process: () => this.#requireServing(), ...checks }).map(([name, check]) => [
        name,
        onceAtATime(check),
      ]),
    );
  }

  /** Records that the process serves. */
  serves(): void {
    if (this.#phase === 'starts') this.#phase = 'serves';
  }

  /** Records that the process ends, so that it gets no new work. */
  ends(): void {
    this.#phase = 'ends';
  }

  #requireServing(): void {
    if (this.#phase !== 'serves') throw new CheckFailedError(`The process ${this.#phase}`);
  }

  async #report(): Promise<ReadinessReport> {
    const results = await Promise.all(
      Object.entries(this.#checks).map(
        async ([name, check]) => [name, await result(check)] as const,
      ),
    );
    return {
      ready: results.every(([, { ok }]) => ok),
      release: this.#release,
      checks: Object.fromEntries(results),
    };
  }
}

/** Shares a call in flight, so that a silent server collects no calls. */
function onceAtATime(check: Check): () => Promise<void> {
  let current: Promise<void> | undefined;
  return () => {
    current ??= call(check).finally(() => (current = undefined));
    return current;
  };
}

async function call(check: Check): Promise<void> {
  await check();
}

async function result(check: () => Promise<void>): Promise<CheckResult> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new CheckFailedError(`No answer within ${ANSWER_MS / 1000} s`);
    timer = setTimeout(() => reject(error), ANSWER_MS);
  });
  try {
    await Promise.race([check(), late]);
    return { ok: true };
  } catch (error) {
    return { ok: false, reason: reasonOf(error).slice(0, MAX_REASON) };
  } finally {
    clearTimeout(timer);
  }
}
