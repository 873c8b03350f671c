import { setTimeout as delay } from 'node:timers/promises';
import { Shares, type Release } from '../../lib/shares.js';

/**
 * How much is still taken in of calls whose clients have left. What is held of a quota for a call
 * stays held until then, so that nobody gets more out of leaving.
 */
export interface LeftCallBounds {
  /** Milliseconds from then on. */
  readonly ms: number;
  /** Bytes of one stream from then on, in OpenAI's chunks. */
  readonly bytes: number;
  /** Calls of one user at a time, and of all. */
  readonly ofUser: number;
  readonly inAll: number;
}

/** For what has been ended to be recorded. */
const CLOSE_MS = 2_000;

const BOUNDS: LeftCallBounds = { ms: 5 * 60_000, bytes: 32 * 1024 * 1024, ofUser: 8, inAll: 100 };

/**
 * A call at its provider, which has a longer life than its client's patience: to leave does not end
 * it. To be ended when it has been recorded.
 */
export interface CallLife {
  /** Aborted, with the reason of the client's own, when nothing more of the call is wanted. */
  readonly signal: AbortSignal;
  /** Whether the client has left. */
  readonly left: boolean;
  /** Says that it has, for whoever knows before the client's signal does. */
  leave(): void;
  end(): void;
}

/** Calls that go on although their clients have left, because what they use is only told at the end. */
export class LeftCalls {
  readonly bounds: LeftCallBounds;
  readonly #lives = new Map<AbortController, AbortSignal>();
  readonly #left: Shares;
  #ended: (() => void) | undefined;

  constructor(bounds: Partial<LeftCallBounds> = {}) {
    this.bounds = { ...BOUNDS, ...bounds };
    this.#left = new Shares({ most: this.bounds.inAll, perOwner: this.bounds.ofUser });
  }

  /** @param client aborted when it leaves. */
  follow(userId: string, client: AbortSignal): CallLife {
    const life = new AbortController();
    this.#lives.set(life, client);
    let left = false;
    let timer: NodeJS.Timeout | undefined;
    let release: Release | undefined;
    const leave = () => {
      if (left) return;
      left = true;
      release = this.#ended ? undefined : this.#left.tryTake(userId);
      if (!release) return life.abort(client.reason);
      timer = setTimeout(() => life.abort(client.reason), this.bounds.ms);
    };
    client.addEventListener('abort', leave, { once: true });
    if (client.aborted) leave();
    return {
      signal: life.signal,
      get left() {
        return left;
      },
      leave,
      end: () => {
        client.removeEventListener('abort', leave);
        clearTimeout(timer);
        release?.();
        this.#lives.delete(life);
        if (this.#lives.size === 0) this.#ended?.();
      },
    };
  }

  /** Ends all calls, and resolves when they are recorded: their clients have been let go of. */
  async close(): Promise<void> {
    const ended = new Promise<void>((resolve) => (this.#ended = resolve));
    for (const [life, client] of this.#lives) life.abort(client.reason);
    if (this.#lives.size === 0) return;
    const giveUp = new AbortController();
    await Promise.race([
      ended,
      delay(CLOSE_MS, undefined, { signal: giveUp.signal }).catch(() => undefined),
    ]);
    giveUp.abort();
  }
}
