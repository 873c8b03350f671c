import { setTimeout as delay } from 'node:timers/promises';
import type { Release } from '../../lib/fair-limiter.js';
import { QuotaLimiter } from '../../lib/quota-limiter.js';

/** Limits on reading abandoned calls. Their quota stays reserved, so that disconnecting gains nothing. */
export interface LeftCallBounds {
  /** Milliseconds after the disconnect. */
  readonly ms: number;
  /** Bytes of one stream after the disconnect, measured on OpenAI's chunks. */
  readonly bytes: number;
  /** Concurrent calls per user, and in total. */
  readonly ofUser: number;
  readonly inAll: number;
}

/** Milliseconds in which ended calls must be recorded. */
const CLOSE_MS = 2_000;

const BOUNDS: LeftCallBounds = { ms: 5 * 60_000, bytes: 32 * 1024 * 1024, ofUser: 8, inAll: 100 };

/** A call that continues after its client disconnects. Call `end` once the call is recorded. */
export interface CallLifetime {
  /** Aborted, with the client's abort reason, when the rest of the call is not needed. */
  readonly signal: AbortSignal;
  /** The client has disconnected. */
  readonly left: boolean;
  /** Marks the client as disconnected before its signal aborts. */
  leave(): void;
  end(): void;
}

/** Calls that outlive their clients, because providers report usage only at the end. */
export class AbandonedCalls {
  readonly bounds: LeftCallBounds;
  readonly #lives = new Map<AbortController, AbortSignal>();
  readonly #left: QuotaLimiter;
  #ended: (() => void) | undefined;

  constructor(bounds: Partial<LeftCallBounds> = {}) {
    this.bounds = { ...BOUNDS, ...bounds };
    this.#left = new QuotaLimiter({ total: this.bounds.inAll, perOwner: this.bounds.ofUser });
  }

  /** Starts a call; `client` aborts when the client disconnects. */
  follow(userId: string, client: AbortSignal): CallLifetime {
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

  /** Ends all calls and resolves when they are recorded. */
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
