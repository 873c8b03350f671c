import * as z from 'zod';
import {
  ContainerMissingError,
  DockerUnavailableError,
  InvalidCursorError,
} from '../../docker/containers/container-errors.js';
import { workspaceCall } from '../../workspace/workspace-call.js';
import { isErrorCode, type ErrorCode } from '../../lib/error-codes.js';
import { BadGatewayError, ConflictError, ServiceError } from '../../lib/errors.js';

/*
 * The protocol between an API process and a remote host's worker: a call as JSON, answered by lines of JSON.
 */

export const CALLS_PATH = '/v1/calls';
export const ANSWER_TYPE = 'application/x-ndjson';

/**
 * Milliseconds between lines; a pulse fills the silence. A reader ends the call after three without a line.
 */
export const PULSE_MS = 15_000;

/** A call can hold a request's whole body, an answer's line a log line or a piece of text. */
export const MAX_CALL_BYTES = 1024 * 1024 + 64 * 1024;
export const MAX_LINE_LENGTH = 4 * 1024 * 1024;

const id = z.string().max(64);

export const hostCall = z.discriminatedUnion('call', [
  z.strictObject({
    call: z.literal('ask'),
    agentId: id,
    userId: id,
    message: z.string(),
    conversation: z.string().max(256),
  }),
  z.strictObject({
    call: z.literal('logs'),
    agentId: id,
    since: z.string().max(128).optional(),
    tail: z.number().int().min(0).optional(),
    follow: z.boolean().optional(),
  }),
  z.strictObject({ call: z.literal('stats'), agentId: id }),
  z.strictObject({ call: z.literal('failures'), agentId: id, userId: id }),
  z.strictObject({
    call: z.literal('instances'),
    userId: id.optional(),
    stats: z.boolean(),
    limit: z.number().int().min(1),
    after: z.string().optional(),
  }),
  z.strictObject({ call: z.literal('browse'), agentId: id, userId: id, asked: workspaceCall }),
]);

/** The path, the protocol and the header by which a caller gets a connection to an agent's gateway. */
export const GATEWAY_PATH = '/v1/gateway';
export const GATEWAY_PROTOCOL = 'agent-gateway';
export const GATEWAY_CALL_HEADER = 'x-gateway-call';

/** The agent to connect to, as JSON in the header: its owner is the tenant that the host reads as. */
export const gatewayCall = z.strictObject({ agentId: id, userId: id });

export type HostCall = z.infer<typeof hostCall>;

const stats = z.object({
  cpuPercent: z.number(),
  memoryBytes: z.number(),
  memoryLimitBytes: z.number(),
  networkReceivedBytes: z.number(),
  networkSentBytes: z.number(),
  processes: z.number(),
  readAt: z.string(),
});

export const ANSWERS = {
  ask: z.string(),
  browse: z.string(),
  logs: z.object({
    timestamp: z.string(),
    stream: z.enum(['stdout', 'stderr']),
    line: z.string(),
    cursor: z.string(),
    isCut: z.literal(true).optional(),
    continues: z.string().optional(),
  }),
  stats: stats.nullable(),
  failures: z.array(z.string()).nullable(),
  instances: z.object({
    id: z.string(),
    agentId: z.string(),
    userId: z.string(),
    status: z.enum(['created', 'running', 'paused', 'restarting', 'removing', 'exited', 'dead']),
    image: z.string(),
    createdAt: z.string(),
    stats: stats.nullable(),
  }),
} as const;

const failure = z.object({
  kind: z.enum(['engine', 'missing', 'cursor', 'gateway', 'conflict', 'fault']),
  message: z.string(),
  /** The code of a conflict; a host of another release may name an unknown one. */
  code: z.custom<ErrorCode>(isErrorCode).optional().catch(undefined),
});

export const answerLine = z.union([
  z.strictObject({ item: z.unknown() }),
  z.strictObject({ pulse: z.literal(true) }),
  z.strictObject({ end: z.literal(true) }),
  z.strictObject({ failure }),
]);

type Failure = z.infer<typeof failure>;

/** Returns a description from which {@link errorOf} restores the error's type. */
export function failureOf(error: unknown): Failure {
  if (error instanceof DockerUnavailableError) return { kind: 'engine', message: error.message };
  if (error instanceof ContainerMissingError) return { kind: 'missing', message: error.message };
  if (error instanceof InvalidCursorError) return { kind: 'cursor', message: error.message };
  if (error instanceof BadGatewayError) return { kind: 'gateway', message: error.message };
  if (error instanceof ConflictError) {
    return { kind: 'conflict', message: error.message, code: error.code };
  }
  return { kind: 'fault', message: "The agent's host failed to answer" };
}

export function errorOf(
  { code = 'OPERATION_IN_FLIGHT', kind, message }: Failure,
  agentId: string,
): Error {
  switch (kind) {
    case 'engine':
      return new ServiceError(500, 'Docker is not available');
    case 'missing':
      return new ContainerMissingError(agentId);
    case 'cursor':
      return new InvalidCursorError();
    case 'conflict':
      return new ConflictError(message, code);
    case 'gateway':
    case 'fault':
      return new BadGatewayError(message);
  }
}
