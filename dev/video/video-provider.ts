import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { deliverEvent, signedEvent } from '../signed-webhooks.js';
import { projectRoot } from '../root.js';

/** Milliseconds for the second half of a slow file. */
const SLOW_MS = 1_500;

/** Maximum number of predictions in memory. */
const MAX_PREDICTIONS = 10_000;

export interface StandInPrediction {
  readonly id: string;
  readonly model: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly webhook: string | undefined;
  /** Events for which the webhook was requested. */
  readonly events: readonly string[] | undefined;
  status: 'starting' | 'processing' | 'succeeded' | 'failed' | 'canceled' | 'aborted';
  output: unknown;
  error: string | null;
}

/** Faults of the stand-in; each lasts until it is removed. */
export interface VideoFaults {
  /** An answer to a request, or its status: only `lost` and `garbage` make the prediction. */
  readonly create?: 'lost' | 'garbage' | 'refused' | 'error' | 'hang' | 401 | 402 | 429;
  /** An answer to a reading: `forgotten` is a 404. */
  readonly read?: 'garbage' | 'half' | 'error' | 'forgotten' | 'unknown-status';
  readonly file?:
    | 'half'
    | 'slow'
    | 'gone'
    | 'html'
    | 'large'
    | 'endless'
    | 'no-length'
    | 'chunked'
    | 'empty'
    | 'error'
    | 'redirect';
  /** The output of predictions, in place of the file. */
  readonly output?: unknown;
  /** The end of predictions, in place of success. */
  readonly end?: 'failed' | 'canceled' | 'aborted' | 'never';
}

export interface VideoProviderStandIn {
  readonly url: string;
  /** Environment of a platform that uses this provider. */
  readonly env: Readonly<Record<string, string>>;
  /** Predictions by id, in the order of their requests. */
  readonly predictions: ReadonlyMap<string, StandInPrediction>;
  /** The bytes of every file. */
  readonly sample: Buffer;
  /** Requests that arrived, such as `GET /v1/predictions/…`. */
  readonly requests: readonly string[];
  faults: VideoFaults;
  /** Milliseconds from a request to the end of its prediction. */
  workMs: number;
  /** False if the ends of predictions are not reported. */
  reports: boolean;
  /** Ends a prediction now, and delivers the event. */
  finish(id: string): void;
  /** Returns the headers and the body of an event's delivery. */
  signed(event: object, id?: string): { headers: Record<string, string>; body: string };
  close(): Promise<void>;
}

interface Options {
  readonly port?: number;
  /** Milliseconds from a request to the end of its prediction. */
  readonly workMs?: number;
}

/**
 * Starts a stand-in of Replicate's predictions API for developers: predictions that end after a while, their files
 * and their signed webhooks, in Replicate's formats. Every video is the same short one.
 *
 * @param options.port any free port by default.
 */
export async function startVideoProvider({
  port = 0,
  workMs = 3_000,
}: Options = {}): Promise<VideoProviderStandIn> {
  const token = `r8_${randomBytes(20).toString('hex')}`;
  const secret = `whsec_${randomBytes(24).toString('base64')}`;
  const sample = await readFile(path.join(projectRoot, 'dev', 'video', 'sample.mp4'));
  const predictions = new Map<string, StandInPrediction>();
  const requests: string[] = [];
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // every prediction waits by it

  const signed = (event: object, id?: string) => signedEvent(secret, event, { id });

  const shown = ({
    events: _events,
    model,
    webhook: _webhook,
    ...prediction
  }: StandInPrediction) => ({
    ...prediction,
    model,
    version: 'hidden',
    logs: '',
    metrics: {},
    urls: {
      get: `${standIn.url}/v1/predictions/${prediction.id}`,
      cancel: `${standIn.url}/v1/predictions/${prediction.id}/cancel`,
    },
  });

  async function deliver(prediction: StandInPrediction): Promise<void> {
    const { webhook } = prediction;
    if (webhook === undefined || !standIn.reports) return;
    await deliverEvent(webhook, signed(shown(prediction)), closing.signal);
  }

  function finish(id: string): void {
    const prediction = predictions.get(id);
    const { end, output } = standIn.faults;
    if (!prediction || isEnded(prediction) || end === 'never') return;
    prediction.status = end ?? 'succeeded';
    if (end === 'failed') prediction.error = 'The model ran out of memory';
    if (end === undefined) prediction.output = output ?? `${standIn.url}/files/${id}/out.mp4`;
    void deliver(prediction);
  }

  function create(model: string, body: string): StandInPrediction | undefined {
    const {
      input,
      webhook,
      webhook_events_filter: events,
    } = JSON.parse(body) as {
      input?: Record<string, unknown>;
      webhook?: string;
      webhook_events_filter?: string[];
    };
    if (typeof input?.prompt !== 'string' || predictions.size >= MAX_PREDICTIONS) return undefined;
    const id = randomBytes(13).toString('hex');
    const prediction: StandInPrediction = {
      ...{ id, model, input, webhook, events, status: 'starting', output: null, error: null },
    };
    predictions.set(id, prediction);
    void delay(standIn.workMs, undefined, { signal: closing.signal, ref: false }).then(
      () => finish(id),
      () => undefined,
    );
    return prediction;
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url: asked = '' } = request;
    const json = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    requests.push(`${method} ${asked}`);
    if (request.headers.authorization !== `Bearer ${token}`) {
      return json(401, { title: 'Unauthenticated', status: 401 });
    }
    const { faults } = standIn;
    const body = await text(request);
    const [, model] = /^\/v1\/models\/([^/]+\/[^/]+)\/predictions$/.exec(asked) ?? [];
    if (method === 'POST' && model !== undefined) {
      if (faults.create === 'refused') return json(422, { title: 'Input validation failed' });
      if (faults.create === 'error') return json(500, { title: 'Internal error' });
      if (faults.create === 'hang') return;
      if (typeof faults.create === 'number') return json(faults.create, { title: 'Not now' });
      const made = create(model, body);
      if (faults.create === 'lost') return void response.destroy();
      if (faults.create === 'garbage') return void response.writeHead(201).end('<html>');
      return made ? json(201, shown(made)) : json(422, { title: 'Input validation failed' });
    }
    const [, id = '', part] = /^\/(?:v1\/predictions|files)\/([^/]+)(?:\/(.+))?$/.exec(asked) ?? [];
    const prediction = predictions.get(id);
    if (!prediction) return json(404, { detail: 'Not found' });
    if (part === 'out.mp4') return sendFile(response, sample, faults.file);
    if (part === 'cancel') {
      if (!isEnded(prediction)) {
        prediction.status = 'canceled';
        void deliver(prediction);
      }
      return json(200, shown(prediction));
    }
    if (faults.read === 'error') return json(503, { title: 'Unavailable' });
    if (faults.read === 'forgotten') return json(404, { detail: 'Not found' });
    if (faults.read === 'unknown-status') return json(200, { ...shown(prediction), status: 'new' });
    if (faults.read === 'garbage') {
      return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"id": 7');
    }
    if (faults.read === 'half') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 999 });
      response.write('{"id"', () => response.destroy());
      return;
    }
    json(200, shown(prediction));
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  // A server that listens on an address and a port has an address object.
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const standIn: VideoProviderStandIn = {
    url,
    env: {
      VIDEO_API_URL: url,
      VIDEO_API_TOKEN: token,
      VIDEO_MODEL: 'stand-in/video',
      VIDEO_WEBHOOK_SECRET: secret,
    },
    predictions,
    sample,
    requests,
    faults: {},
    workMs,
    reports: true,
    finish,
    signed,
    async close() {
      closing.abort();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return standIn;
}

const isEnded = ({ status }: StandInPrediction): boolean =>
  status !== 'starting' && status !== 'processing';

/** Sends the file, or what a fault makes of it. */
function sendFile(response: ServerResponse, sample: Buffer, fault: VideoFaults['file']): void {
  const type = { 'content-type': 'video/mp4' };
  switch (fault) {
    case undefined:
      response.writeHead(200, { ...type, 'content-length': sample.length }).end(sample);
      return;
    case 'half':
      response.writeHead(200, { ...type, 'content-length': sample.length });
      response.write(sample.subarray(0, sample.length / 2), () => response.destroy());
      return;
    case 'slow':
      response.writeHead(200, { ...type, 'content-length': sample.length });
      void sendSlowly(response, sample);
      return;
    case 'gone':
      response.writeHead(404).end();
      return;
    case 'html':
      response.writeHead(200, { 'content-type': 'text/html' }).end('<script>alert(1)</script>');
      return;
    case 'empty':
      response.writeHead(200, type).end();
      return;
    case 'large':
      response.writeHead(200, { ...type, 'content-length': 501 * 1024 ** 2 });
      response.flushHeaders();
      return;
    case 'endless':
      sendEndlessly(response.writeHead(200, type));
      return;
    case 'no-length':
      response.shouldKeepAlive = false;
      response.useChunkedEncodingByDefault = false;
      response.writeHead(200, { ...type, connection: 'close' }).end(sample);
      return;
    case 'chunked':
      response.writeHead(200, type);
      response.write(sample.subarray(0, sample.length / 2));
      response.end(sample.subarray(sample.length / 2));
      return;
    case 'error':
      response.writeHead(500).end();
      return;
    case 'redirect':
      response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end();
  }
}

async function sendSlowly(response: ServerResponse, sample: Buffer): Promise<void> {
  const half = sample.length / 2;
  response.write(sample.subarray(0, half));
  await delay(SLOW_MS);
  response.end(sample.subarray(half));
}

function sendEndlessly(response: ServerResponse): void {
  const piece = Buffer.alloc(1024 * 1024);
  const more = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', more);
  more();
}
