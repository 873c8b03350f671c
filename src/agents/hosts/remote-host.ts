import http from 'node:http';
import https from 'node:https';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type * as z from 'zod';
import type { AgentRef } from '../../types/agent-ref.js';
import type { LogLine, LogOptions } from '../../docker/containers/container-logs.js';
import type { ContainerStats } from '../../docker/containers/container-view.js';
import { ContainerError } from '../../docker/containers/container-errors.js';
import { BadGatewayError, ServiceError, UnavailableError } from '../../lib/errors.js';
import { boundedRequest } from '../../platform/http/strict-call.js';
import { tryParseJson } from '../../lib/json.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import type { HostAccess, Instance, Instances, Question } from './host-access.js';
import type { WorkspaceCall } from '../../workspace/workspace-call.js';
import { hostToken } from './host-token.js';
import {
  ANSWERS,
  ANSWER_TYPE,
  answerLine,
  CALLS_PATH,
  errorOf,
  GATEWAY_CALL_HEADER,
  GATEWAY_PATH,
  GATEWAY_PROTOCOL,
  MAX_LINE_LENGTH,
  PULSE_MS,
  type HostCall,
} from './host-wire.js';

/** Milliseconds to connect and authenticate, and then between two lines. */
const ADMISSION_MS = 10_000;
const SILENCE_MS = 3 * PULSE_MS;

const BROKEN_OFF = "The agent's host broke off its answer";
const INVALID = "The agent's host sent an invalid answer";

/** 503: the worker of the agent's host does not answer or is unknown. */
export class HostUnreachableError extends UnavailableError {
  override readonly name = 'HostUnreachableError';

  constructor(options?: ErrorOptions) {
    super("The agent's host cannot be reached from here: retry later", options);
  }
}

interface RemoteHostParts {
  readonly id: string;
  readonly url: string;
  /** The certificate of the authority of the worker's; Node's usual ones by default. */
  readonly ca?: string | undefined;
  readonly secrets: SecretBox;
  readonly log: Logger;
  readonly admissionMs?: number;
}

/**
 * Access to a remote host's agents through its worker. Every method throws UnavailableError if the worker is
 * unreachable, and BadGatewayError if the connection breaks.
 */
export class RemoteHost implements HostAccess {
  readonly #parts: RemoteHostParts;

  constructor(parts: RemoteHostParts) {
    this.#parts = parts;
  }

  ask({ agentId, userId }: AgentRef, question: Question, signal: AbortSignal) {
    const { conversation, message } = question;
    return this.#call({ call: 'ask', agentId, userId, message, conversation }, ANSWERS.ask, signal);
  }

  logs(agentId: string, { signal, ...options }: LogOptions = {}): AsyncGenerator<LogLine> {
    return this.#call({ call: 'logs', agentId, ...options }, ANSWERS.logs, signal);
  }

  connect({ agentId, userId }: AgentRef): Promise<Duplex> {
    const { admissionMs = ADMISSION_MS, ca, id, log, secrets, url } = this.#parts;
    const call = JSON.stringify({ agentId, userId });
    const { request: open } = url.startsWith('https:') ? https : http;
    return new Promise((resolve, reject) => {
      const request = open(`${url}${GATEWAY_PATH}`, {
        agent: false,
        ca,
        timeout: admissionMs,
        headers: {
          connection: 'Upgrade',
          upgrade: GATEWAY_PROTOCOL,
          authorization: `Bearer ${hostToken(secrets, id, call)}`,
          [GATEWAY_CALL_HEADER]: call,
        },
      });
      request.on('timeout', () => request.destroy(new Error('its worker does not answer')));
      request.on('error', (error) => {
        log.warn({ err: error, host: id }, 'connecting to an agent through its host failed');
        reject(new HostUnreachableError({ cause: error }));
      });
      request.on('response', ({ statusCode }) => {
        request.destroy();
        reject(new BadGatewayError(`The agent's host refused a connection (${statusCode})`));
      });
      request.on('upgrade', (_answer, socket, head) => {
        socket.setTimeout(0);
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      request.end();
    });
  }

  async stats(agentId: string): Promise<ContainerStats | null> {
    for await (const stats of this.#call({ call: 'stats', agentId }, ANSWERS.stats)) return stats;
    return null;
  }

  async failures({ agentId, userId }: AgentRef, signal: AbortSignal) {
    const call = { call: 'failures', agentId, userId } as const;
    for await (const failing of this.#call(call, ANSWERS.failures, signal)) return failing;
    return null;
  }

  async instances(options: Instances): Promise<Instance[]> {
    const instances: Instance[] = [];
    const call = { call: 'instances', ...options } as const;
    for await (const instance of this.#call(call, ANSWERS.instances)) instances.push(instance);
    return instances;
  }

  browse({ agentId, userId }: AgentRef, asked: WorkspaceCall, signal: AbortSignal) {
    return this.#call({ call: 'browse', agentId, userId, asked }, ANSWERS.browse, signal);
  }

  async *#call<T>(
    call: HostCall,
    schema: z.ZodType<T>,
    signal?: AbortSignal,
  ): AsyncGenerator<T, void> {
    const { admissionMs = ADMISSION_MS, id, log } = this.#parts;
    const patience = new IdleTimeout(admissionMs);
    let answers = false;
    try {
      const response = await this.#send(
        call,
        signal ? AbortSignal.any([signal, patience.signal]) : patience.signal,
      );
      answers = true;
      patience.reset(SILENCE_MS);
      for await (const line of linesOf(response)) {
        // The timeout pauses while the local reader is busy.
        patience.pause();
        const read = answerLine.safeParse(tryParseJson(line)).data;
        if (!read) throw new BadGatewayError(INVALID);
        if ('end' in read) return;
        if ('failure' in read) throw errorOf(read.failure, 'agentId' in call ? call.agentId : '');
        if ('item' in read) {
          const item = schema.safeParse(read.item);
          if (!item.success) throw new BadGatewayError(INVALID, { cause: item.error });
          yield item.data;
        }
        patience.reset(SILENCE_MS);
      }
      throw new BadGatewayError(BROKEN_OFF);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      if (error instanceof ServiceError || error instanceof ContainerError) throw error;
      log.warn({ err: error, host: id }, 'a call to a Docker host failed');
      // The remote work may have been done.
      if (answers) throw new BadGatewayError(BROKEN_OFF, { cause: error });
      throw new HostUnreachableError({ cause: error });
    } finally {
      // Closes the connection when the reader stops early, so that the worker stops its work, too.
      patience.stop();
    }
  }

  async #send(call: HostCall, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const { ca, id, secrets, url } = this.#parts;
    const { status, body } = await boundedRequest({
      url: `${url}${CALLS_PATH}`,
      // `boundedRequest` serializes the body to the same text.
      headers: { authorization: `Bearer ${hostToken(secrets, id, JSON.stringify(call))}` },
      body: call,
      accept: ANSWER_TYPE,
      ca,
      signal,
    });
    if (status === 200 && body) return body;
    throw new Error(
      status === 401
        ? "its worker refused the token: compare its AGENT_HOST, ENCRYPTION_KEY, release and clock with this process's"
        : `its worker answered with status ${status}`,
    );
  }
}

class IdleTimeout {
  readonly #ending = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number) {
    this.reset(ms);
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  reset(ms: number): void {
    this.pause();
    this.#timer = setTimeout(() => this.#ending.abort(), ms);
  }

  pause(): void {
    clearTimeout(this.#timer);
  }

  stop(): void {
    this.pause();
    this.#ending.abort();
  }
}

/** Splits a body into lines. @throws BadGatewayError for a line that is too long. */
async function* linesOf(body: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const piece of body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > MAX_LINE_LENGTH)
      throw new BadGatewayError("The agent's host sent a line that is too long");
  }
}
