import { request } from 'node:http';
import { z } from 'zod';
import { tryParseJson } from '../json.js';
import { readText } from '../read-beginning.js';

/** What a gateway answered. `reachable: false` covers refused, reset, timed out and not HTTP. */
export type ProbeResult<T> = { readonly reachable: false; readonly reason: string } | Answer<T>;

interface Answer<T> {
  readonly reachable: true;
  readonly status: number;
  readonly body: T | undefined;
}

export interface ProbeOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly token?: string | undefined;
}

const healthBody = z.object({ ok: z.boolean(), status: z.string().optional() });
const readyBody = z.object({
  ready: z.boolean(),
  // Shown only to a caller with the token, so their absence is not a failure.
  failing: z.array(z.unknown()).optional(),
  uptimeMs: z.number().optional(),
});

/** An answer of a probe is some hundred bytes; a gateway that sends more than this is not believed. */
const MAX_BODY_BYTES = 64 * 1024;

/** `GET /healthz`: whether the gateway is alive. It stays 200 while it drains. */
export async function gatewayHealth(port: number, options: ProbeOptions) {
  const result = await probe(port, '/healthz', healthBody, options);
  return { ...result, healthy: isWell(result) && result.body?.ok !== false };
}

/** `GET /readyz`: whether the gateway takes work. The token shows what is `failing`. */
export async function gatewayReady(port: number, options: ProbeOptions) {
  const result = await probe(port, '/readyz', readyBody, options);
  return { ...result, ready: isWell(result) && result.body?.ready !== false };
}

function isWell<T>(result: ProbeResult<T>): result is Answer<T> {
  return result.reachable && result.status === 200;
}

function probe<T>(
  port: number,
  path: string,
  schema: z.ZodType<T>,
  options: ProbeOptions,
): Promise<ProbeResult<T>> {
  return new Promise((resolve) => {
    const unreachable = (error: Error) => resolve({ reachable: false, reason: error.message });
    const timeout = AbortSignal.timeout(options.timeoutMs);
    const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
    const headers = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
    // A connection of its own for each probe: a pooled one would not notice that the gateway is new.
    const call = request(
      { host: '127.0.0.1', port, path, headers, signal, agent: false },
      (response) => {
        readText(response, MAX_BODY_BYTES).then((text) => {
          // Without the body we know, the status alone decides.
          const body = schema.safeParse(tryParseJson(text)).data;
          resolve({ reachable: true, status: response.statusCode ?? 0, body });
        }, unreachable);
      },
    );
    call.on('error', unreachable);
    call.end();
  });
}
