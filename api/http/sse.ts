import { Readable } from 'node:stream';
import { jittered } from '../../src/lib/jitter.js';
import { streamReply, type StreamReply } from './reply.js';

export interface ServerEvent {
  readonly id?: string;
  readonly event?: string;
  /** Strings are sent unchanged, anything else as JSON. */
  readonly data?: unknown;
}

export function wantsEvents({ accept }: { readonly accept?: string | undefined }): boolean {
  return accept?.includes('text/event-stream') === true;
}

const HEARTBEAT_MS = 15_000;
const HEARTBEAT = ': heartbeat\n\n';

/**
 * Answers 200 with events at the client's pace, plus a comment every 15 s to keep idle connections open. The
 * source ends when the client disconnects; a source that waits should also watch the request's signal.
 * @param heartbeatMs for tests.
 */
export function eventStream(
  events: AsyncIterable<ServerEvent>,
  heartbeatMs = HEARTBEAT_MS,
): StreamReply<200> {
  const source = events[Symbol.asyncIterator]();
  // A heartbeat makes the stream call `read` while the previous read is still pending.
  let pulling = false;

  const stream = new Readable({
    read() {
      if (pulling) return;
      pulling = true;
      source
        .next()
        .then((next) => {
          pulling = false;
          if (next.done === true) clearInterval(heartbeat);
          this.push(next.done === true ? null : encodeEvent(next.value));
        })
        .catch((error: unknown) => this.destroy(asError(error)));
    },
    destroy(error, done) {
      clearInterval(heartbeat);
      if (source.return === undefined) return done(error);
      source.return().then(
        () => done(error),
        (failure: unknown) => done(error ?? asError(failure)),
      );
    },
  });
  const heartbeat = setInterval(() => {
    // No heartbeat for a client that is not even reading its events.
    if (stream.readableLength === 0) stream.push(HEARTBEAT);
  }, jittered(heartbeatMs));
  heartbeat.unref();
  // Starts the generator: its `finally` would not run otherwise.
  stream.read(0);

  return streamReply(200, stream, 'text/event-stream; charset=utf-8', {
    'X-Accel-Buffering': 'no',
  });
}

/** Encodes an event. @throws TypeError for a multi-line id or event name, which could forge events. */
export function encodeEvent({ id, event, data }: ServerEvent): string {
  let frame = '';
  if (id !== undefined) frame += `id: ${oneLine(id)}\n`;
  if (event !== undefined) frame += `event: ${oneLine(event)}\n`;
  if (data !== undefined) {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    for (const line of text.split(/\r\n|\r|\n/)) frame += `data: ${line}\n`;
  }
  return `${frame}\n`;
}

function oneLine(text: string): string {
  if (/[\r\n\0]/.test(text)) throw new TypeError('an event id or name must be one line');
  return text;
}

const asError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)));
