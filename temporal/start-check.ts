import { isGrpcServiceError, type ConnectionLike } from '@temporalio/client';
import type { Logger } from 'pino';
import { UnavailableError } from '../src/lib/errors.js';
import { jittered } from '../src/lib/jitter.js';
import { pause } from '../src/lib/pause.js';
import { withDeadline } from './with-deadline.js';

/** A namespace that Temporal does not have. The message is one sentence that says what to do. */
export class UnknownNamespaceError extends Error {
  override readonly name = 'UnknownNamespaceError';

  constructor(namespace: string, address: string) {
    super(
      `Temporal at ${address} has no namespace "${namespace}": run ` +
        `temporal operator namespace create --namespace ${namespace} --retention 168h --address ${address}, ` +
        'then start again',
    );
  }
}

/** Milliseconds of one attempt; an operator sees within 5 s that Temporal is unavailable. */
export const ATTEMPT_MS = 4_000;

const PAUSE_MS = 2_000;

/** gRPC's status codes. */
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const UNAVAILABLE = 14;

/** Names where Temporal is expected. */
export interface TemporalPlace {
  readonly connectionOptions: { readonly address?: string };
  readonly namespace: string;
}

export const addressOf = ({ connectionOptions }: TemporalPlace): string =>
  connectionOptions.address ?? 'localhost:7233';

/** Returns namespace and address, as a log names them. */
export const nameOf = (place: TemporalPlace): string => `${place.namespace} at ${addressOf(place)}`;

/**
 * Checks that Temporal answers and has the namespace. Other refusals pass, since a role may be too narrow to
 * read the namespace. @throws UnavailableError, UnknownNamespaceError
 */
export async function checkNamespace(
  connection: ConnectionLike,
  place: TemporalPlace,
): Promise<void> {
  const { namespace } = place;
  try {
    await withDeadline(connection, ATTEMPT_MS, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
  } catch (error) {
    if (!isGrpcServiceError(error)) throw awayError(place, error);
    const code = Number(error.code);
    if (code === NOT_FOUND) throw new UnknownNamespaceError(namespace, addressOf(place));
    if (code === UNAVAILABLE || code === DEADLINE_EXCEEDED) throw awayError(place, error);
  }
}

/** Returns the error for a Temporal that does not answer. */
export const awayError = (place: TemporalPlace, cause?: unknown): UnavailableError =>
  new UnavailableError(`Temporal does not answer at ${addressOf(place)}`, { cause });

/** Options of a wait for Temporal. */
export interface Waiting {
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Reports the first failure. */
  readonly onAway?: (sentence: string) => void;
  /** True to retry where the namespace is missing, too: the process has other work. */
  readonly outlivesNamespace?: boolean;
}

/**
 * Repeats the attempt until Temporal answers.
 * @returns undefined if the signal aborts first. @throws all errors but UnavailableError
 */
export async function untilTemporalAnswers<T>(
  attempt: () => Promise<T>,
  { log, onAway, outlivesNamespace = false, signal }: Waiting,
): Promise<T | undefined> {
  let isReported = false;
  while (!signal.aborted) {
    try {
      const answer = await attempt();
      if (isReported) log.info('Temporal answers');
      return answer;
    } catch (error) {
      const isMissing = outlivesNamespace && error instanceof UnknownNamespaceError;
      if (!isMissing && !(error instanceof UnavailableError)) throw error;
      const sentence = `${error.message}; retrying`;
      log.warn(sentence);
      if (!isReported) onAway?.(sentence);
      isReported = true;
      await pause(jittered(PAUSE_MS), signal);
    }
  }
  return undefined;
}
