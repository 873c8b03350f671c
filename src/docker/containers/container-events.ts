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

/** What Docker tells of our containers, and whether it can be heard. */
export type ContainerEvent =
  | ({ readonly kind: 'death' } & ContainerDeath)
  /**
   * From here on everything is heard. What ended before may not have been: Docker remembers
   * few events, and none from before its own start. So whoever hears this looks at what is there.
   */
  | {
      readonly kind: 'connected';
      /** Unix milliseconds; undefined the first time. */
      readonly lostAt: number | undefined;
    }
  | { readonly kind: 'lost'; readonly reason: string };

/**
 * A Docker daemon that shuts down stops its containers before its connections: what ended so long
 * before the stream was lost is its doing.
 */
export const ENGINE_SHUTDOWN_MS = 30_000;

const OPEN_TIMEOUT_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 2_000;

/** A connection that broke without a word is noticed by Docker's silence on another one. */
const PING_INTERVAL_MS = 5_000;
const PING_TIMEOUT_MS = 5_000;

/** Events are stamped before they are put in order: asking again starts this much earlier. */
const DISORDER_NS = 1_000_000_000n;

/** Events that were heard, lest they are heard again: more than Docker remembers. */
const MAX_HEARD = 1_000;

/**
 * The ends of an installation's containers as they happen, until the signal aborts. A lost
 * connection is taken up again with what happened since, without a gap as far as Docker
 * remembers, and without a repeat.
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
      const stream = await openEvents(client, position.since, OPEN_TIMEOUT_MS);
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

/** Goes on until the stream ends or fails, which is an error either way. */
async function* deathsOf(
  stream: Readable,
  position: Position,
  causes: DeathCauses,
): AsyncGenerator<ContainerEvent> {
  const events = readEvents(stream);
  const hear = () =>
    events.next().catch((error: unknown) => ({ done: true, value: undefined, error }) as const);
  for (let next = hear(); ;) {
    const dueIn = causes.dueIn();
    const heard = await (dueIn === undefined ? next : Promise.race([next, delay(dueIn)]));
    if (heard === undefined) {
      for (const death of causes.due(Date.now())) yield { kind: 'death', ...death };
    } else if (heard.done) {
      for (const death of causes.due()) yield { kind: 'death', ...death };
      if ('error' in heard) throw asContainerError(heard.error);
      throw new DockerUnavailableError('The container engine ended the stream of its events');
    } else {
      next = hear();
      const death = position.isNew(heard.value) ? causes.hear(heard.value) : undefined;
      if (death) yield { kind: 'death', ...death };
    }
  }
}

/** Breaks the stream when Docker falls silent or the signal aborts. @returns what ends both. */
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
    // What is told after this is told to nobody.
    stream.on('error', () => undefined).destroy();
  };
}

/** Up to where the events were heard. */
class Position {
  readonly #heard = new Map<string, true>();
  readonly #begin = BigInt(Date.now()) * 1_000_000n;
  /** The latest event's time: by Docker's clock, which may be another one than this. */
  #at: bigint | undefined;

  /** Where to go on, in Unix nanoseconds. */
  get since(): bigint {
    return this.#at === undefined ? this.#begin : this.#at - DISORDER_NS;
  }

  /** Also puts it down as heard. */
  isNew({ containerId, action, at }: DockerEvent): boolean {
    const key = `${at} ${action} ${containerId}`;
    if (this.#heard.has(key)) return false;
    setBounded(this.#heard, key, true, MAX_HEARD);
    if (this.#at === undefined || at > this.#at) this.#at = at;
    return true;
  }
}
