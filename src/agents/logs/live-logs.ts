import { randomUUID } from 'node:crypto';
import { cursorOfNow, type LogLine } from '../../docker/containers/container-logs.js';
import { ContainerMissingError } from '../../docker/containers/container-errors.js';
import type { Release } from '../../lib/fair-limiter.js';
import type { HostAccess } from '../hosts/host-access.js';
import { QuotaLimiter } from '../../lib/quota-limiter.js';
import { redactLog } from './redact-log.js';

type Logs = Pick<HostAccess, 'logs'>;

/** Maximum number of streams of this process, and of one owner; each holds a connection. */
const MAX_STREAMS = 200;
const MAX_STREAMS_OF_OWNER = 20;

export interface OpenStream {
  readonly streamId: string;
  readonly agentId: string;
  /** A time in ISO 8601. */
  readonly startedAt: string;
}

export type LogEvent =
  | { readonly kind: 'line'; readonly line: LogLine }
  | { readonly kind: 'end'; readonly reason: 'container-ended' | 'container-missing' | 'stopped' };

export interface FollowOptions {
  readonly since: string | undefined;
  /** Secrets that are redacted in every line, such as the agent's tokens. */
  readonly redact: readonly string[];
  readonly signal: AbortSignal;
}

export class LiveLogs {
  readonly #open = new Map<
    string,
    OpenStream & { readonly stop: AbortController; readonly release: Release }
  >();
  readonly #limiter = new QuotaLimiter({
    total: MAX_STREAMS,
    perOwner: MAX_STREAMS_OF_OWNER,
    message: 'Too many log streams',
  });

  /** Follows an agent's log after a cursor, by default from now on. @throws TooManyRequestsError */
  follow(
    host: Logs,
    { id: agentId, userId }: { readonly id: string; readonly userId: string },
    options: FollowOptions,
  ): { readonly stream: OpenStream; readonly events: AsyncIterable<LogEvent> } {
    options.signal.throwIfAborted();
    const release = this.#limiter.take(userId);
    const stop = new AbortController();
    // The log starts at the time of the request, not at the later time when Docker is reached.
    const since = options.since ?? cursorOfNow();
    const stream = { streamId: randomUUID(), agentId, startedAt: new Date().toISOString() };
    this.#open.set(stream.streamId, { ...stream, stop, release });
    options.signal.addEventListener('abort', () => this.#end(stream.streamId), { once: true });
    return { stream, events: this.#events(host, stream, stop.signal, { ...options, since }) };
  }

  active(agentId: string): OpenStream[] {
    return [...this.#open.values()]
      .filter((stream) => stream.agentId === agentId)
      .map(({ streamId, startedAt }) => ({ streamId, agentId, startedAt }));
  }

  /** Ends a stream of this agent; false if the stream does not exist. */
  stop(agentId: string, streamId: string): boolean {
    const stream = this.#open.get(streamId);
    if (stream?.agentId !== agentId) return false;
    stream.stop.abort();
    return true;
  }

  async *#events(
    host: Logs,
    stream: OpenStream,
    stopped: AbortSignal,
    options: FollowOptions,
  ): AsyncGenerator<LogEvent> {
    try {
      const lines = host.logs(stream.agentId, {
        since: options.since,
        follow: true,
        signal: AbortSignal.any([stopped, options.signal]),
      });
      for await (const line of redactLog(lines, options.redact)) yield { kind: 'line', line };
      yield { kind: 'end', reason: stopped.aborted ? 'stopped' : 'container-ended' };
    } catch (error) {
      if (stopped.aborted) yield { kind: 'end', reason: 'stopped' };
      else if (error instanceof ContainerMissingError) {
        yield { kind: 'end', reason: 'container-missing' };
      } else if (!options.signal.aborted) throw error;
    } finally {
      this.#end(stream.streamId);
    }
  }

  #end(streamId: string): void {
    const stream = this.#open.get(streamId);
    stream?.stop.abort();
    stream?.release();
    this.#open.delete(streamId);
  }
}

/** Returns a page of an agent's log: the last lines, or the lines after a cursor. */
export async function logHistory(
  host: Logs,
  agentId: string,
  options: {
    readonly limit: number;
    readonly cursor: string | undefined;
    readonly redact: readonly string[];
  },
): Promise<{ readonly lines: readonly LogLine[]; readonly cursor: string | undefined }> {
  const { cursor, redact, limit } = options;
  const lines: LogLine[] = [];
  try {
    const all = host.logs(agentId, cursor === undefined ? { tail: limit } : { since: cursor });
    for await (const line of redactLog(all, redact)) {
      lines.push(line);
      if (lines.length >= limit) break;
    }
  } catch (error) {
    // An agent without a container has an empty log.
    if (!(error instanceof ContainerMissingError)) throw error;
  }
  return { lines, cursor: lines.at(-1)?.cursor ?? cursor };
}
