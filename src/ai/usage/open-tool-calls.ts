/** Milliseconds after which a call without a result counts as failed. */
const OPEN_MS = 60 * 60_000;

/** Maximum number of open calls of one caller and of all; beyond these the oldest count as failed. */
const MAX_OF_CALLER = 1_000;
const MAX_OPEN = 50_000;

/** A longer id is never matched with a result. */
const MAX_ID_LENGTH = 256;

export interface OpenToolCall {
  readonly id: string;
  readonly name: string;
  /** Milliseconds of the end of the call's answer. */
  readonly since: number;
  /** Milliseconds of the first request with the result. */
  resultAt?: number;
}

/** Calls of tools, in the memory of this process, from the end of their answers until their results. */
export class OpenToolCalls {
  /** By caller, whose last answer with calls is the longest ago first, then by id, oldest first. */
  readonly #callers = new Map<string, Map<string, OpenToolCall>>();
  readonly #now: () => number;
  #size = 0;

  /** `now`: milliseconds of a monotonic clock. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get size(): number {
    return this.#size;
  }

  /** Reports whether the caller may have open calls. */
  has(caller: string): boolean {
    return this.#callers.has(caller);
  }

  /** Finds an open call whose result a request carries. The first of several such requests sets the time. */
  find(caller: string, id: string): OpenToolCall | undefined {
    const call = this.#callers.get(caller)?.get(id);
    if (call === undefined) return undefined;
    const now = this.#now();
    if (now - call.since <= OPEN_MS) call.resultAt ??= now;
    return call.resultAt === undefined ? undefined : call;
  }

  /** Closes a call; false if another request with the same result was first. */
  close(caller: string, call: OpenToolCall): boolean {
    const calls = this.#callers.get(caller);
    if (calls?.get(call.id) !== call) return false;
    this.#delete(caller, calls, call.id);
    return true;
  }

  /** Opens a call at the end of its answer. */
  open(caller: string, { id, name }: Pick<OpenToolCall, 'id' | 'name'>): void {
    if (id === '' || id.length > MAX_ID_LENGTH) return;
    const calls = this.#callers.get(caller) ?? new Map<string, OpenToolCall>();
    this.#size += calls.delete(id) ? 0 : 1;
    calls.set(id, { id, name, since: this.#now() });
    this.#callers.delete(caller);
    this.#callers.set(caller, calls);
    if (calls.size > MAX_OF_CALLER) this.#deleteOldest(caller, calls);
    this.#sweep();
  }

  /** Removes expired calls of the callers that were silent the longest, and the oldest beyond the bound. */
  #sweep(): void {
    const before = this.#now() - OPEN_MS;
    for (const [caller, calls] of this.#callers) {
      for (const [id, { since }] of calls) {
        if (since >= before && this.#size <= MAX_OPEN) return;
        this.#delete(caller, calls, id);
      }
    }
  }

  #deleteOldest(caller: string, calls: Map<string, OpenToolCall>): void {
    const [oldest = ''] = calls.keys();
    this.#delete(caller, calls, oldest);
  }

  #delete(caller: string, calls: Map<string, OpenToolCall>, id: string): void {
    if (calls.delete(id)) this.#size -= 1;
    if (calls.size === 0) this.#callers.delete(caller);
  }
}
