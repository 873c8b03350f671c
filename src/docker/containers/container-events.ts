import { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { setBounded } from '../../lib/bounded-map.js';
import { jittered } from '../../lib/jitter.js';
import { pause } from '../../lib/pause.js';
import { DockerRefusedError, DockerUnavailableError } from './container-errors.js';
import { type ContainerDeath, DeathCauses } from './death-cause.js';
import { asContainerError, type DockerClient } from './docker-client.js';
import { type DockerEvent, openEvents, readEvents } from './docker-events.js';

export type ContainerEvent =
  | ({ readonly kind: 'death' } & ContainerDeath)
  /**
   * All events from now on are received. Earlier ones may be lost, since Docker keeps only a few, and none
   * from before its own start: check the current state on this event.
   */
  | {
      readonly kind: 'connected';
      /** Unix milliseconds; undefined for the first connection. */
      readonly lostAt: number | undefined;
    }
  | { readonly kind: 'lost'; readonly reason: string };

/**
 * Milliseconds before a lost stream within which deaths count as the engine's shutdown: Docker stops its
 * containers before it closes connections.
 */
export const ENGINE_SHUTDOWN_MS = 30_000;

const OPEN_TIMEOUT_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 2_000;

/** Milliseconds between pings on a second connection; they detect a silently broken stream. */
const PING_INTERVAL_MS = 5_000;
const PING_TIMEOUT_MS = 5_000;

/** Docker stamps events before it orders them, so a resumed stream starts this much earlier. */
const DISORDER_NS = 1_000_000_000n;

/** Maximum number of received events remembered against duplicates; more than Docker keeps. */
const MAX_SEEN = 1_000;

/**
 * Yields the deaths of an installation's containers until the signal aborts. Resumes a lost connection
 * without gaps, as far as Docker keeps events, and without duplicates.
 */
export async function* followContainers(
  client: DockerClient,
  signal: AbortSignal,
): AsyncGenerator<ContainerEvent> {
  const position = new Position();
  const causes = new DeathCauses();
  let wasConnected = false;
  let lostAt: number | undefined;
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      const stream = await openEvents(
        client,
        { since: position.since },
        { timeoutMs: OPEN_TIMEOUT_MS },
      );
      const release = watchConnection(client, stream, signal);
      try {
        yield { kind: 'connected', lostAt };
        wasConnected = true;
        failures = 0;
        yield* deathsOf(stream, position, causes);
      } finally {
        release();
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof DockerUnavailableError || error instanceof DockerRefusedError))
        throw error;
      if (failures === 0) {
        lostAt = wasConnected ? Date.now() : undefined;
        yield { kind: 'lost', reason: error.message };
      }
    }
    await pause(jittered(Math.min(FIRST_PAUSE_MS * 2 ** failures, LAST_PAUSE_MS)), signal);
  }
}

/** Yields deaths until the stream ends or fails, both of which are errors. */
async function* deathsOf(
  stream: Readable,
  position: Position,
  causes: DeathCauses,
): AsyncGenerator<ContainerEvent> {
  const events = readEvents(stream);
  const receive = () =>
    events.next().catch((error: unknown) => ({ done: true, value: undefined, error }) as const);
  for (let next = receive(); ;) {
    const dueIn = causes.dueIn();
    const received = await (dueIn === undefined ? next : Promise.race([next, delay(dueIn)]));
    if (received === undefined) {
      for (const death of causes.due(Date.now())) yield { kind: 'death', ...death };
    } else if (received.done) {
      for (const death of causes.due()) yield { kind: 'death', ...death };
      if ('error' in received) throw asContainerError(received.error);
      throw new DockerUnavailableError('The container engine ended its event stream');
    } else {
      next = receive();
      const death = position.isNew(received.value) ? causes.record(received.value) : undefined;
      if (death) yield { kind: 'death', ...death };
    }
  }
}

/** Breaks the stream if Docker falls silent or the signal aborts; the result ends watch and stream. */
function watchConnection(client: DockerClient, stream: Readable, signal: AbortSignal): () => void {
  if (stream instanceof IncomingMessage) stream.socket.setKeepAlive(true, PING_INTERVAL_MS);
  const end = () => stream.destroy();
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  const pinging = setInterval(() => {
    client
      .call((docker) => docker.ping(), PING_TIMEOUT_MS)
      .catch((error: Error) => stream.destroy(error));
  }, jittered(PING_INTERVAL_MS));
  return () => {
    clearInterval(pinging);
    signal.removeEventListener('abort', end);
    // A later error has no receiver and must not end the process.
    stream.on('error', () => undefined).destroy();
  };
}

/** The position in the event stream up to which events were received. */
class Position {
  readonly #received = new Map<string, true>();
  readonly #begin = BigInt(Date.now()) * 1_000_000n;
  /** Time of the latest event by Docker's clock, which may differ from this machine's. */
  #at: bigint | undefined;

  /** The time to resume from, in Unix nanoseconds. */
  get since(): bigint {
    return this.#at === undefined ? this.#begin : this.#at - DISORDER_NS;
  }

  /** Reports whether an event is new, and records it as received. */
  isNew({ containerId, action, at }: DockerEvent): boolean {
    const key = `${at} ${action} ${containerId}`;
    if (this.#received.has(key)) return false;
    setBounded(this.#received, key, true, MAX_SEEN);
    if (this.#at === undefined || at > this.#at) this.#at = at;
    return true;
  }
}
