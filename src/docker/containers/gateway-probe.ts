import { Agent } from 'node:http';
import * as z from 'zod';
import { boundedRequest, textOf } from '../../platform/http/strict-call.js';
import { tryParseJson } from '../../lib/json.js';

/** `reachable: false` covers refused, reset, timed out and not HTTP. */
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
  // Returned only to a caller with the token, so a missing value is no failure.
  failing: z.array(z.unknown()).optional(),
  uptimeMs: z.number().optional(),
});

/** Maximum number of bytes of a probe's answer; a normal one has some hundred. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Maximum number of failing parts that are read of an answer. */
const MAX_FAILURES = 100;

const JSON_TYPE = 'application/json';

/**
 * Reports liveness by `GET /healthz` and `GET /health`, which stay 200 while draining. An image may support
 * only one; each supported one must be healthy.
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

export interface ReadyOptions extends ProbeOptions {
  /** True for an agent with channels: a channel that cannot sign in fails `/readyz`. */
  readonly hasChannels?: boolean | undefined;
}

/**
 * Reports whether the gateway accepts work: by `GET /startupz` for an agent with channels if its image
 * supports that, otherwise by `GET /readyz`.
 */
export async function gatewayReady(port: number, { hasChannels, ...options }: ReadyOptions) {
  return within(options, async (bounds) => {
    if (hasChannels === true) {
      const started = await probe(port, '/startupz', healthBody, bounds);
      if (!isMissing(started)) return { ...started, ready: isHealthy(started) };
    }
    const result = await probe(port, '/readyz', readyBody, bounds);
    return { ...result, ready: isWell(result) && result.body?.ready !== false };
  });
}

/**
 * Returns the parts that fail `GET /readyz`, channels among them; undefined if the gateway does not report
 * them.
 */
export async function gatewayFailures(
  port: number,
  options: ProbeOptions & { readonly token: string },
): Promise<readonly string[] | undefined> {
  return within(options, async (bounds) => {
    const result = await probe(port, '/readyz', readyBody, bounds);
    const failing = result.reachable ? result.body?.failing : undefined;
    return failing?.filter((each) => typeof each === 'string').slice(0, MAX_FAILURES);
  });
}

/**
 * Reports whether the gateway refuses a chat without its token by 401. The request names no message, so that
 * a gateway that accepts it makes no call to a model.
 */
export async function gatewayRefusesStrangers(
  port: number,
  { signal, timeoutMs }: Omit<ProbeOptions, 'token'>,
): Promise<boolean> {
  const bounds = { signal, timeoutMs };
  return within(bounds, async ({ agent, signal: ending }) => {
    try {
      const { status } = await boundedRequest({
        url: `http://127.0.0.1:${port}/v1/chat/completions`,
        body: {},
        accept: JSON_TYPE,
        maxBytes: MAX_ANSWER_BYTES,
        signal: ending,
        agent,
      });
      return status === 401;
    } catch {
      return false;
    }
  });
}

function isWell<T>(result: ProbeResult<T>): result is Answer<T> {
  return result.reachable && result.status === 200;
}

const isHealthy = (result: ProbeResult<z.output<typeof healthBody>>): boolean =>
  isWell(result) && result.body?.ok !== false;

const isMissing = (result: ProbeResult<unknown>): boolean =>
  result.reachable && result.status === 404;

interface ProbeBounds {
  readonly signal: AbortSignal;
  readonly agent: Agent;
  readonly token: string | undefined;
}

/** Runs a probe on a new connection: a pooled one would miss that the gateway has restarted. */
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
    const { status, body } = await boundedRequest({
      url: `http://127.0.0.1:${port}${path}`,
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
      accept: JSON_TYPE,
      maxBytes: MAX_ANSWER_BYTES,
      signal,
      agent,
    });
    // A 200 without JSON comes from some other program.
    if (!body && status === 200)
      return { reachable: false, reason: `the answer is not ${JSON_TYPE}` };
    // If the body is not in the known form, only the status counts.
    const known = body && schema.safeParse(tryParseJson(await textOf(body))).data;
    return { reachable: true, status, body: known };
  } catch (error) {
    return { reachable: false, reason: error instanceof Error ? error.message : 'no answer' };
  }
}
