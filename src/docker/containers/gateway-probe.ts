import { Agent } from 'node:http';
import * as z from 'zod';
import { strictCall, textOf } from '../../platform/http/strict-call.js';
import { tryParseJson } from '../../lib/json.js';

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
const MAX_ANSWER_BYTES = 64 * 1024;

const JSON_TYPE = 'application/json';

/**
 * `GET /healthz` and `GET /health`, within the time together: whether the gateway is alive. Both stay
 * 200 while it drains. An image may know only one of them; what it knows has to be well.
 */
export async function gatewayHealth(port: number, options: ProbeOptions) {
  return within(options, async (bounds) => {
    const first = await probe(port, '/healthz', healthBody, bounds);
    const second =
      isMissing(first) || isHealthy(first)
        ? await probe(port, '/health', healthBody, bounds)
        : first;
    const result = isMissing(second) ? first : second;
    return { ...result, healthy: isHealthy(result) };
  });
}

/** `GET /readyz`: whether the gateway takes work. The token shows what is `failing`. */
export async function gatewayReady(port: number, options: ProbeOptions) {
  return within(options, async (bounds) => {
    const result = await probe(port, '/readyz', readyBody, bounds);
    return { ...result, ready: isWell(result) && result.body?.ready !== false };
  });
}

function isWell<T>(result: ProbeResult<T>): result is Answer<T> {
  return result.reachable && result.status === 200;
}

const isHealthy = (result: ProbeResult<z.output<typeof healthBody>>): boolean =>
  isWell(result) && result.body?.ok !== false;

const isMissing = (result: ProbeResult<unknown>): boolean =>
  result.reachable && result.status === 404;

/** What the requests of one probe share. */
interface ProbeBounds {
  readonly signal: AbortSignal;
  readonly agent: Agent;
  readonly token: string | undefined;
}

/** A connection of its own for each probe: a pooled one would not notice that the gateway is new. */
async function within<T>(
  { signal, timeoutMs, token }: ProbeOptions,
  work: (bounds: ProbeBounds) => Promise<T>,
): Promise<T> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    return await work({
      agent,
      token,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
  } finally {
    agent.destroy();
  }
}

async function probe<T>(
  port: number,
  path: string,
  schema: z.ZodType<T>,
  { agent, signal, token }: ProbeBounds,
): Promise<ProbeResult<T>> {
  try {
    const { status, body } = await strictCall({
      url: `http://127.0.0.1:${port}${path}`,
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
      accept: JSON_TYPE,
      maxBytes: MAX_ANSWER_BYTES,
      signal,
      agent,
    });
    // Some other program says that all is well.
    if (!body && status === 200) return { reachable: false, reason: `it answers no ${JSON_TYPE}` };
    // Without the body we know, the status alone decides.
    const known = body && schema.safeParse(tryParseJson(await textOf(body))).data;
    return { reachable: true, status, body: known };
  } catch (error) {
    return { reachable: false, reason: error instanceof Error ? error.message : 'no answer' };
  }
}
