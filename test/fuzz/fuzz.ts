import { FairLimiter } from '../../src/lib/fair-limiter.js';
import { newAddress } from '../support/http.js';
import { Random } from '../support/random.js';
import type { Operation } from './document.js';
import { requestFor, type FuzzRequest } from './requests.js';
import type { Known } from './values.js';
import { faultOf, type FuzzAnswer } from './verdict.js';

/** A caller of operations: anonymous, a user, an operator, ... */
export interface FuzzCaller {
  readonly name: string;
  headersFor(operation: Operation): Readonly<Record<string, string>>;
  /** Returns valid values that this caller can use. */
  knownFor(operation: Operation): Known;
  /** Texts that no answer to this caller may contain. */
  readonly forbidden: readonly string[];
}

/** A listener and its callers. */
export interface FuzzTarget {
  readonly name: string;
  readonly url: string;
  readonly operations: readonly Operation[];
  readonly callers: readonly FuzzCaller[];
  /** Statuses of 500 and above that report an unavailable dependency, by operation. */
  readonly away: Readonly<Record<string, readonly number[]>>;
}

/** The result of a fuzz run. */
export interface FuzzReport {
  /** One fault of each kind, with the request that shows it. */
  readonly faults: readonly string[];
  readonly requests: number;
  /** Operations that never succeeded, so that little of them was tested. */
  readonly neverDone: readonly string[];
}

/** Seed and duration of a run. */
export interface FuzzOptions {
  readonly seed: number;
  /** Creates resources that a round may remove. */
  beforeRound(): Promise<void>;
  /**
   * Reports whether the run ends.
   *
   * @param rounds the number of completed rounds.
   * @param neverDone operations that have not succeeded yet.
   */
  isOver(rounds: number, neverDone: readonly string[]): boolean;
}

interface Question {
  readonly target: FuzzTarget;
  readonly caller: FuzzCaller;
  readonly operation: Operation;
  readonly request: FuzzRequest;
}

const AT_ONCE = 8;

/** Milliseconds of a stream that are read. */
const STREAM_MS = 300;

const ANSWER_TIMEOUT_MS = 30_000;

/**
 * Requests every operation as every caller, in rounds: alternately as declared and with a fault in each
 * request.
 */
export async function fuzz(
  targets: readonly FuzzTarget[],
  { seed, beforeRound, isOver }: FuzzOptions,
): Promise<FuzzReport> {
  const random = new Random(seed);
  const faults = new Map<string, string>();
  const done = new Set<string>();
  let requests = 0;

  async function ask({ target, caller, operation, request }: Question): Promise<void> {
    requests += 1;
    const name = nameOf(target, operation);
    const answer = await send(target.url, caller.headersFor(operation), request);
    if (typeof answer !== 'string' && answer.status < 300) done.add(name);
    const fault =
      typeof answer === 'string' ? answer : faultIn({ target, caller, operation, request }, answer);
    const kind = `${name} ${fault?.replace(/[0-9a-f-]{36}|\d{4,}/g, '').slice(0, 100)}`;
    if (fault === undefined || faults.has(kind)) return;
    const { body = '', headers, path } = request;
    const shown = [`${name} as ${caller.name}`, fault, path, JSON.stringify(headers), body];
    faults.set(kind, shown.map((part) => part.slice(0, 500)).join('\n    '));
  }

  const names = targets.flatMap((target) =>
    target.operations.map((operation) => nameOf(target, operation)),
  );
  const neverDone = () => names.filter((name) => !done.has(name));

  for (let rounds = 0; !isOver(rounds, neverDone()); rounds++) {
    await beforeRound();
    const questions = targets.flatMap((target) =>
      target.operations.flatMap((operation) =>
        target.callers.map((caller) => {
          const known = caller.knownFor(operation);
          const request = requestFor(operation, random, known, rounds % 2 === 1);
          return { target, caller, operation, request };
        }),
      ),
    );
    const limiter = new FairLimiter({ atOnce: AT_ONCE, perOwner: AT_ONCE });
    await Promise.all(
      random.shuffled(questions).map((question) => limiter.run({ owner: '' }, () => ask(question))),
    );
  }

  return { faults: [...faults.values()], requests, neverDone: neverDone() };
}

function faultIn(
  { target, caller, operation, request }: Question,
  answer: FuzzAnswer,
): string | undefined {
  const mark = caller.forbidden.find((each) => answer.text?.includes(each));
  if (mark !== undefined) return `shows ${mark}, which is another's`;
  return faultOf(operation, request, answer, target.away[operation.name] ?? []);
}

function nameOf(target: FuzzTarget, operation: Operation): string {
  return `${target.name}: ${operation.name}`;
}

/**
 * Sends a request.
 *
 * @returns the answer, or a description of the failure if there was none.
 */
async function send(
  url: string,
  shown: Readonly<Record<string, string>>,
  request: FuzzRequest,
): Promise<FuzzAnswer | string> {
  const leaving = new AbortController();
  let head: Omit<FuzzAnswer, 'text'> | undefined;
  try {
    const response = await fetch(`${url}${request.path}`, {
      method: request.method,
      redirect: 'manual',
      headers: { 'x-forwarded-for': newAddress(), ...request.headers, ...shown },
      ...(request.body !== undefined && request.method !== 'GET' && { body: request.body }),
      signal: AbortSignal.any([leaving.signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
    });
    head = { status: response.status, type: response.headers.get('content-type') ?? '' };
    const isStream = head.type.startsWith('text/event-stream');
    const left = isStream ? setTimeout(() => leaving.abort(), STREAM_MS) : undefined;
    const text = await response.text();
    clearTimeout(left);
    return { ...head, text };
  } catch (error) {
    if (head && leaving.signal.aborted) return { ...head, text: undefined };
    return `no answer: ${describeError(error)}`;
  }
}

function describeError(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  return cause instanceof Error ? `${String(error)}: ${cause.message}` : String(error);
}
