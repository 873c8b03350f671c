import { Readable } from 'node:stream';
import { jittered } from '../../src/lib/jitter.js';
import { streamReply, type StreamReply } from './reply.js';

/** One server-sent event. */
export interface ServerEvent {
  readonly id?: string;
  readonly event?: string;
  /** Text is sent as it is, anything else as JSON. */
  readonly data?: unknown;
}

/** Whether a caller asks for its answer as events, by `Accept`. */
export function wantsEvents({ accept }: { readonly accept?: string | undefined }): boolean {
  return accept?.includes('text/event-stream') === true;
}

const HEARTBEAT_MS = 15_000;
const HEARTBEAT = ': heartbeat\n\n';

/**
 * Answers 200 with events as they come, as fast as the client takes them, and a comment every 15 s
 * so that nothing on the way takes the connection for dead. The source is left when the client
 * goes: a source that waits for something should also watch the request's signal.
 *
 * @param heartbeatMs for tests.
 */
export function eventStream(
  events: AsyncIterable<ServerEvent>,
  heartbeatMs = HEARTBEAT_MS,
): StreamReply<200> {
  const source = events[Symbol.asyncIterator]();
  // A heartbeat makes the stream ask for more while the last question is still open.
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
    // A client that does not even take the events needs no heartbeat on top of them.
    if (stream.readableLength === 0) stream.push(HEARTBEAT);
  }, jittered(heartbeatMs));
  heartbeat.unref();
  // A generator that was never begun would not do what it has to do at its end.
  stream.read(0);

  return streamReply(200, stream, 'text/event-stream; charset=utf-8', {
    'X-Accel-Buffering': 'no',
  });
}

/** @throws TypeError for an id or event name of more than one line, which would forge events. */
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
